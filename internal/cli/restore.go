package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
)

const restoreLong = `Adds what tables had in a backup to tables of a cluster that serves clients: what was
written later wins. The tables must be there, with the same columns; if one is not, the
restore says how to create it.

With --at they get what the tables had at that time, where a schedule has kept the commit
logs: a ring is made as it was then, backed up and deleted, which takes as many nodes and
volumes as the cluster has.

With --replace what the tables have goes first: every node keeps it in a snapshot, which
stays. Nothing is touched before every node has downloaded and checked what comes, and
before it is confirmed: by --confirm, or later as the status says.

It creates a CassandraRestore, with your rights. With --wait it says how far that is, and
ends with it. Deleting the CassandraRestore cancels it; rows that came back stay.`

// restoring are the flags of a restore.
type restoring struct {
	spec     v1alpha1.CassandraRestoreSpec
	at       string
	source   string
	tables   []string
	deadline time.Duration
	replace  bool
	wait     bool
}

func newRestore(s *settings) *cobra.Command {
	var r restoring
	cmd := &cobra.Command{
		Use: "restore CLUSTER", Short: "Bring tables of a backup back into a cluster", Long: restoreLong,
		Args: oneCluster,
		Example: "  kubectl helenus restore orders --store main --backup 20261125T030000Z-1a2b3c4d " +
			"--table shop.orders=shop.orders_old --wait\n" +
			"  kubectl helenus restore orders --store main --backup 20261125T030000Z-1a2b3c4d " +
			"--table shop.orders --replace\n" +
			"  kubectl helenus restore orders --store main --at 2026-11-25T14:03:10Z " +
			"--table shop.orders=shop.orders_then --wait",
		RunE: s.connected(func(ctx context.Context, c *connection, args []string) error {
			return s.giveRestore(ctx, c, args[0], r)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&r.spec.Store.Name, "store", "", "the CassandraBackupStore by its `name`")
	flags.StringVar(&r.spec.Backup, "backup", "", "the `id` of the backup, as kubectl helenus backups shows it")
	flags.StringVar(&r.at, "at", "", "instead of a backup: the `time`, such as 2026-11-25T14:03:10Z")
	flags.StringVar(&r.source, "source", "", "the `uid` of the cluster that it was taken of, if that is another one")
	flags.StringArrayVar(&r.tables, "table", nil, "a `table` as keyspace.table, or as keyspace.table=keyspace.table "+
		"if another one gets its rows; can be repeated")
	flags.StringArrayVar(&r.spec.Keyspaces, "keyspace", nil, "a `keyspace` of which all tables of the backup come back, "+
		"in place of tables; can be repeated")
	flags.BoolVar(&r.replace, "replace", false, "remove the rows that the tables have, and keep them in a snapshot")
	flags.BoolVar(&r.spec.Confirm, "confirm", false, "do not wait for a confirmation before --replace removes rows")
	flags.DurationVar(&r.deadline, "deadline", 24*time.Hour, "how long it may take, at most 168h")
	flags.BoolVar(&r.wait, "wait", false, "wait until it has finished")
	_ = cmd.MarkFlagRequired("store") // it is there
	for _, one := range [][]string{{"table", "keyspace"}, {"backup", "at"}} {
		cmd.MarkFlagsOneRequired(one...)
		cmd.MarkFlagsMutuallyExclusive(one...)
	}
	return cmd
}

// giveRestore creates a restore, and waits for its end if that is wanted.
func (s *settings) giveRestore(ctx context.Context, c *connection, cluster string, r restoring) error {
	spec := r.spec
	spec.Cluster.Name, spec.Deadline = cluster, &metav1.Duration{Duration: r.deadline}
	if r.replace {
		spec.Mode = v1alpha1.RestoreReplace
	}
	if r.at != "" {
		at, err := time.Parse(time.RFC3339, r.at)
		if err != nil {
			return fmt.Errorf("--at %q must be a time such as 2026-11-25T14:03:10Z", r.at)
		}
		spec.PointInTime = &metav1.Time{Time: at}
	}
	if r.source != "" {
		spec.Source = &v1alpha1.RestoreSource{UID: types.UID(r.source)}
	}
	for _, table := range r.tables {
		from, to, _ := strings.Cut(table, "=")
		spec.Tables = append(spec.Tables, v1alpha1.RestoredTable{From: from, To: to})
	}
	if _, err := c.cluster(ctx, cluster); err != nil {
		return err
	}
	object := &v1alpha1.CassandraRestore{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace,
		GenerateName: cluster + "-"}, Spec: spec}
	if err := c.client.Create(ctx, object); err != nil {
		return fmt.Errorf("create CassandraRestore: %w", err)
	}
	if !r.wait {
		_, err := fmt.Fprintf(s.streams.Out,
			"CassandraRestore %s is created; kubectl get cassandrarestore %s shows how far it is\n", object.Name,
			object.Name)
		return err
	}
	return s.await(ctx, c, "CassandraRestore", object, func() (string, string, bool, bool) {
		of := &object.Status
		return fmt.Sprintf("%s %s %s", of.Phase, of.Progress, of.Message), of.Message, of.Finished(),
			of.Phase == v1alpha1.TaskSucceeded
	})
}
