package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
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
	schedules := &v1alpha1.CassandraBackupScheduleList{}
	if err := c.client.List(ctx, schedules, client.InNamespace(c.namespace)); err != nil {
		return fmt.Errorf("list CassandraBackupSchedules: %w", err)
	}
	restored := map[string]string{}
	for _, schedule := range schedules.Items {
		if of := schedule.Status.RestoreDrill; of != nil && of.LastProven != nil {
			restored[of.LastProven.ID] = of.LastProven.At.UTC().Format(time.RFC3339)
		}
	}
	rows := [][]string{{"NAME", "SCHEDULE", "STORE", "ID", "PHASE", "DONE", "TAKEN", "SKEW", "BYTES", "NEW", "VERIFIED",
		"RESTORED", "MESSAGE"}}
	for i := range all.Items {
		b := &all.Items[i]
		if b.Spec.Cluster.Name != cluster {
			continue
		}
		taken, skew, verified := "", "", ""
		if b.Status.TakenAt != nil {
			taken, skew = b.Status.TakenAt.UTC().Format(time.RFC3339), b.Status.Skew.Duration.String()
		}
		if of := b.Status.Verified; of != nil && of.DamagedFiles > 0 {
			verified = fmt.Sprintf("%d damaged", of.DamagedFiles)
		} else if of != nil && of.At != nil {
			verified = of.At.UTC().Format(time.RFC3339)
		}
		rows = append(rows, []string{b.Name, orDash(b.Labels[v1alpha1.LabelSchedule]), b.Spec.Store.Name,
			orDash(b.Status.ID), orDash(string(b.Status.Phase)), orDash(b.Status.Progress), orDash(taken),
			orDash(skew), strconv.FormatInt(b.Status.Bytes, 10), strconv.FormatInt(b.Status.NewBytes, 10),
			orDash(verified), orDash(restored[b.Status.ID]), orDash(oneLine(b.Status.Message))})
	}
	if len(rows) == 1 {
		_, err := fmt.Fprintf(s.streams.Out, "%s has no CassandraBackups in namespace %s\n", cluster, c.namespace)
		return err
	}
	table(s.streams.Out, rows)
	return nil
}

const verifyLong = `Has the operator look for all files of a backup in its store, and read as many as --sample
says. What is missing or damaged is in the status of the CassandraBackup; the next backup
uploads it again, if a node has it yet.

It annotates the CassandraBackup, with your rights. With --wait it says what was found, and
fails if that is damage.`

func newVerify(s *settings) *cobra.Command {
	var percent int
	var wait bool
	cmd := &cobra.Command{
		Use: "verify BACKUP", Short: "Verify a backup in its store", Long: verifyLong, Args: cobra.ExactArgs(1),
		Example: "  kubectl helenus verify nightly-29541780 --sample 100 --wait",
		RunE: s.connected(func(ctx context.Context, c *connection, args []string) error {
			return s.verifyBackup(ctx, c, args[0], percent, wait)
		}),
	}
	cmd.Flags().IntVar(&percent, "sample", 100, "how many `percent` of the files are read whole")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until it has finished")
	return cmd
}

// verifyBackup asks for a verification, and waits for its end if that is wanted.
func (s *settings) verifyBackup(ctx context.Context, c *connection, name string, percent int, wait bool) error {
	if percent < 0 || percent > 100 {
		return fmt.Errorf("--sample is %d: it must be from 0 to 100", percent)
	}
	object := &v1alpha1.CassandraBackup{}
	if err := c.client.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, object); err != nil {
		return fmt.Errorf("get CassandraBackup %s: %w", name, err)
	}
	if phase := object.Status.Phase; phase != v1alpha1.BackupComplete {
		return fmt.Errorf("CassandraBackup %s is %s: only what is complete can be verified", name,
			orDash(string(phase)))
	}
	before := object.DeepCopy()
	request := fmt.Sprintf("%d%%@%s", percent, s.now().UTC().Format(time.RFC3339))
	metav1.SetMetaDataAnnotation(&object.ObjectMeta, v1alpha1.AnnotationVerify, request)
	if err := c.client.Patch(ctx, object, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("annotate CassandraBackup %s: %w", name, err)
	}
	if !wait {
		_, err := fmt.Fprintf(s.streams.Out,
			"it was asked for; status.verified of CassandraBackup %s will say what was found\n", name)
		return err
	}
	return s.await(ctx, c, "verification of CassandraBackup", object, func() (string, string, bool, bool) {
		of := object.Status.Verified
		if of == nil || of.Request != request {
			return "is verified", "", false, false
		}
		if of.Problem != "" {
			return of.Problem, of.Problem, true, false
		}
		is := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionVerified)
		return is.Message, is.Message, true, of.DamagedFiles == 0
	})
}
