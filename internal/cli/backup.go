package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
)

const backupLong = `Puts what all nodes of a cluster hold into a store: a snapshot on every node at once, of
which each sends the files that the store does not have. The operator begins it when no
change of the ring is under way.

It creates a CassandraBackup, with your rights. With --wait it says how far that is, and
ends with it. Deleting the CassandraBackup cancels it, and with --deletion-policy Delete
deletes it in the store.`

// backing are the flags of a backup.
type backing struct {
	spec      v1alpha1.CassandraBackupSpec
	bandwidth string
	deadline  time.Duration
	wait      bool
}

func newBackup(s *settings) *cobra.Command {
	var b backing
	cmd := &cobra.Command{
		Use: "backup CLUSTER", Short: "Back a cluster up into a store", Long: backupLong, Args: oneCluster,
		Example: "  kubectl helenus backup orders --store main --wait\n" +
			"  kubectl helenus backup orders --store main --keyspaces shop --bandwidth 50Mi",
		RunE: s.connected(func(ctx context.Context, c *connection, args []string) error {
			return s.giveBackup(ctx, c, args[0], b)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&b.spec.Store.Name, "store", "", "the CassandraBackupStore by its `name`")
	flags.StringSliceVar(&b.spec.Keyspaces, "keyspaces", nil, "only these `keyspaces`, with those of schema and roles")
	flags.StringSliceVar(&b.spec.ExcludeTables, "exclude-tables", nil, "without these `tables`, each as keyspace.table")
	flags.StringVar(&b.bandwidth, "bandwidth", "", "how many bytes a node reads in a second, such as 50Mi")
	flags.DurationVar(&b.deadline, "deadline", 24*time.Hour, "how long it may take, at most 168h")
	flags.StringVar((*string)(&b.spec.DeletionPolicy), "deletion-policy", string(v1alpha1.BackupRetain),
		"what becomes of it in the store when the CassandraBackup is deleted, Retain or Delete")
	flags.BoolVar(&b.wait, "wait", false, "wait until it has finished")
	_ = cmd.MarkFlagRequired("store") // it is there
	return cmd
}

// giveBackup creates a backup, and waits for its end if that is wanted.
func (s *settings) giveBackup(ctx context.Context, c *connection, cluster string, b backing) error {
	spec := b.spec
	spec.Cluster.Name, spec.Deadline = cluster, &metav1.Duration{Duration: b.deadline}
	if b.bandwidth != "" {
		q, err := resource.ParseQuantity(b.bandwidth)
		if err != nil {
			return fmt.Errorf("read --bandwidth %q: %w", b.bandwidth, err)
		}
		spec.Limits = &v1alpha1.BackupLimits{BandwidthPerNode: &q}
	}
	if _, err := c.cluster(ctx, cluster); err != nil {
		return err
	}
	object := &v1alpha1.CassandraBackup{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace,
		GenerateName: cluster + "-"}, Spec: spec}
	if err := c.client.Create(ctx, object); err != nil {
		return fmt.Errorf("create CassandraBackup: %w", err)
	}
	if !b.wait {
		_, err := fmt.Fprintf(s.streams.Out,
			"CassandraBackup %s is created; kubectl helenus backups %s shows how far it is\n", object.Name, cluster)
		return err
	}
	return s.await(ctx, c, "CassandraBackup", object, func() (string, string, bool, bool) {
		of := &object.Status
		return fmt.Sprintf("%s %s %s", of.Phase, of.Progress, of.Message), of.Message, of.Phase.Final(),
			of.Phase == v1alpha1.BackupComplete
	})
}

func newBackups(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "backups CLUSTER", Short: "List the backups of a cluster", Args: oneCluster,
		Long:    "Lists the CassandraBackups of a cluster, the latest first.",
		Example: "  kubectl helenus backups orders",
		RunE: s.connected(func(ctx context.Context, c *connection, args []string) error {
			return s.listBackups(ctx, c, args[0])
		}),
	}
}

func (s *settings) listBackups(ctx context.Context, c *connection, cluster string) error {
	all := &v1alpha1.CassandraBackupList{}
	if err := c.client.List(ctx, all, client.InNamespace(c.namespace)); err != nil {
		return fmt.Errorf("list CassandraBackups: %w", err)
	}
	slices.SortFunc(all.Items, func(a, b v1alpha1.CassandraBackup) int {
		return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
	})
	rows := [][]string{{"NAME", "SCHEDULE", "STORE", "ID", "PHASE", "DONE", "TAKEN", "SKEW", "BYTES", "NEW", "MESSAGE"}}
	for i := range all.Items {
		b := &all.Items[i]
		if b.Spec.Cluster.Name != cluster {
			continue
		}
		taken, skew := "", ""
		if b.Status.TakenAt != nil {
			taken, skew = b.Status.TakenAt.UTC().Format(time.RFC3339), b.Status.Skew.Duration.String()
		}
		rows = append(rows, []string{b.Name, orDash(b.Labels[v1alpha1.LabelSchedule]), b.Spec.Store.Name,
			orDash(b.Status.ID), orDash(string(b.Status.Phase)), orDash(b.Status.Progress), orDash(taken),
			orDash(skew), strconv.FormatInt(b.Status.Bytes, 10), strconv.FormatInt(b.Status.NewBytes, 10),
			orDash(oneLine(b.Status.Message))})
	}
	if len(rows) == 1 {
		_, err := fmt.Fprintf(s.streams.Out, "%s has no CassandraBackups in namespace %s\n", cluster, c.namespace)
		return err
	}
	table(s.streams.Out, rows)
	return nil
}
