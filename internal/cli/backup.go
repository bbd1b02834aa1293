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

const backupsLong = `Lists the CassandraBackups of a cluster, the latest first.

With --cost it says what they take in their stores, in bytes. A file that several backups have
is in a store once, so the bytes of backups do not add up to those of a store:

  BYTES    of all files of the backup
  NEW      of those that the store did not have before it
  ALONE    of those that no other backup has now: what the deletion of this one frees

Then it says of each store what it has of the cluster in all: files of backups (BYTES), of these
what no backup needs any more and the next sweeps delete (WAITING), and commit logs (LOGS). ALONE
and what a store has are as of the last sweep (SWEPT), one a day.`

func newBackups(s *settings) *cobra.Command {
	var costs bool
	cmd := &cobra.Command{
		Use: "backups CLUSTER", Short: "List the backups of a cluster", Args: oneCluster, Long: backupsLong,
		Example: "  kubectl helenus backups orders\n  kubectl helenus backups orders --cost",
		RunE: s.connected(func(ctx context.Context, c *connection, args []string) error {
			if costs {
				return s.costOfBackups(ctx, c, args[0])
			}
			return s.listBackups(ctx, c, args[0])
		}),
	}
	cmd.Flags().BoolVar(&costs, "cost", false, "what the backups take in their stores")
	return cmd
}

// backupsOf are those of a cluster, the latest first.
func (c *connection) backupsOf(ctx context.Context, cluster string) ([]v1alpha1.CassandraBackup, error) {
	all := &v1alpha1.CassandraBackupList{}
	if err := c.client.List(ctx, all, client.InNamespace(c.namespace)); err != nil {
		return nil, fmt.Errorf("list CassandraBackups: %w", err)
	}
	slices.SortFunc(all.Items, func(a, b v1alpha1.CassandraBackup) int {
		return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
	})
	return slices.DeleteFunc(all.Items, func(b v1alpha1.CassandraBackup) bool {
		return b.Spec.Cluster.Name != cluster
	}), nil
}

// costOfBackups says what the backups of a cluster take in their stores.
func (s *settings) costOfBackups(ctx context.Context, c *connection, cluster string) error {
	all, err := c.backupsOf(ctx, cluster)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return s.noBackups(c, cluster)
	}
	stores := &v1alpha1.CassandraBackupStoreList{}
	if err := c.client.List(ctx, stores, client.InNamespace(c.namespace)); err != nil {
		return fmt.Errorf("list CassandraBackupStores: %w", err)
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	alone, of := map[string]string{}, map[string]bool{} // by store, uid and id
	for i := range all {
		of[all[i].Spec.Store.Name+" "+string(all[i].Status.ClusterUID)] = true
	}
	inStores := [][]string{{"STORE", "CLUSTER UID", "FILES", "BYTES", "WAITING", "LOGS", "SWEPT"}}
	for _, store := range stores.Items {
		for _, in := range store.Status.Clusters {
			key := store.Name + " " + string(in.UID)
			if !of[key] || in.SweptAt == nil {
				continue
			}
			for _, a := range in.Alone {
				alone[key+" "+a.ID] = number(a.Bytes)
			}
			inStores = append(inStores, []string{store.Name, string(in.UID), number(in.Files), number(in.Bytes),
				number(in.WaitingBytes), number(in.LogBytes), in.SweptAt.UTC().Format(time.RFC3339)})
		}
	}
	rows := [][]string{{"NAME", "STORE", "ID", "PHASE", "BYTES", "NEW", "ALONE"}}
	for i := range all {
		b := &all[i]
		rows = append(rows, []string{b.Name, b.Spec.Store.Name, orDash(b.Status.ID), orDash(string(b.Status.Phase)),
			number(b.Status.Bytes), number(b.Status.NewBytes), orDash(alone[b.Spec.Store.Name+" "+
				string(b.Status.ClusterUID)+" "+b.Status.ID])})
	}
	table(s.streams.Out, rows)
	if len(inStores) == 1 {
		_, err := fmt.Fprintln(s.streams.Out,
			"\nwhat the stores have in all is known after their first sweep, within a day")
		return err
	}
	_, err = fmt.Fprintln(s.streams.Out)
	table(s.streams.Out, inStores)
	return err
}

func (s *settings) noBackups(c *connection, cluster string) error {
	_, err := fmt.Fprintf(s.streams.Out, "%s has no CassandraBackups in namespace %s\n", cluster, c.namespace)
	return err
}

func (s *settings) listBackups(ctx context.Context, c *connection, cluster string) error {
	all, err := c.backupsOf(ctx, cluster)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return s.noBackups(c, cluster)
	}
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
	for i := range all {
		b := &all[i]
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
