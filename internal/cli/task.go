package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
)

const taskLong = `Has the nodes of a cluster run one operation, once each. The operator begins it when no
change of the ring is under way, and keeps the result of each node in the status of the
task: kubectl get casstask.

It creates a CassandraTask, with your rights. With --wait it says how far that is, and
ends with it. Deleting the task cancels it, also what runs, where Cassandra can.`

// noTasks are operations of nodetool that are no task, with what to use instead.
var noTasks = map[string]string{
	"drain": "a drained node serves nobody until its JVM is restarted: use restart, which drains each node before",
	"assassinate": "Helenus does that itself with the stale endpoints of failed joins; to take a lost member " +
		"out of the ring use remove",
	"move":           "nodes have several tokens each, and Cassandra moves none of these",
	"resetsuperuser": "use kubectl helenus superuser reset, which asks before",
}

// taskPoll is how often a task is asked for: a person looks at it.
const taskPoll = time.Second

// tasking are the flags of a task.
type tasking struct {
	spec          v1alpha1.TaskTemplate
	deadline, ttl time.Duration
	snapshotTTL   time.Duration
	primaryRange  bool
	incremental   bool
	split         bool
	wait          bool
}

func newTask(s *settings) *cobra.Command {
	var t tasking
	cmd := &cobra.Command{
		Use: "task CLUSTER TYPE", Short: "Have nodes run an operation, such as cleanup, repair or restart",
		Long: taskLong,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("name one CassandraCluster and a type, %s: kubectl helenus task orders flush",
					typesInWords())
			}
			return nil
		},
		Example: "  kubectl helenus task orders flush --wait\n" +
			"  kubectl helenus task orders remove --nodes orders-dc1-r1-1 --wait\n" +
			"  kubectl helenus task orders cleanup --datacenters dc1 --racks r1,r2 --concurrency 2\n" +
			"  kubectl helenus task orders repair --nodes orders-dc1-r1-0 --keyspaces shop\n" +
			"  kubectl helenus task orders snapshot --keyspaces shop --snapshot-ttl 24h\n" +
			"  kubectl helenus task orders compact --keyspaces shop --tables carts --split",
		RunE: s.connected(func(ctx context.Context, c *connection, args []string) error {
			return s.giveTask(ctx, c, args[1], args[0], t)
		}),
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&t.spec.Datacenters, "datacenters", nil, "only the nodes of these `datacenters`")
	flags.StringSliceVar(&t.spec.Racks, "racks", nil, "only the nodes of these `racks`")
	flags.StringSliceVar(&t.spec.Nodes, "nodes", nil, "only these `nodes`")
	flags.StringSliceVar(&t.spec.Keyspaces, "keyspaces", nil, "only these `keyspaces`")
	flags.StringSliceVar(&t.spec.Tables, "tables", nil, "only these `tables` of the one keyspace")
	flags.StringSliceVar(&t.spec.Indexes, "indexes", nil, "the `indexes` of the one table that rebuildindex is about")
	flags.StringVar(&t.spec.Tag, "tag", "", "the `tag` of the snapshot that clearsnapshot removes")
	flags.StringVar(&t.spec.SourceDatacenter, "source-datacenter", "", "the `datacenter` that rebuild streams from")
	flags.DurationVar(&t.snapshotTTL, "snapshot-ttl", 0, "how long Cassandra keeps a snapshot; 0: until clearsnapshot")
	flags.BoolVar(&t.split, "split", false, "have compact leave several SSTables by size, and not one")
	flags.Int32Var(&t.spec.Concurrency, "concurrency", 1, "how many nodes work at once")
	flags.BoolVar(&t.primaryRange, "primary-range", false, "repair only the ranges of which a node is first replica")
	flags.BoolVar(&t.incremental, "incremental", false, "repair only what no incremental repair has marked as repaired")
	flags.DurationVar(&t.deadline, "deadline", 24*time.Hour, "how long it may take, at most 168h")
	flags.DurationVar(&t.ttl, "ttl", 24*time.Hour, "how long it is kept when it has finished")
	flags.BoolVar(&t.wait, "wait", false, "wait until it has finished")
	return cmd
}

func typesInWords() string {
	var out []string
	for _, t := range v1alpha1.TaskTypes() {
		if name := strings.ToLower(string(t)); noTasks[name] == "" {
			out = append(out, name)
		}
	}
	return strings.Join(out, ", ")
}

// giveTask creates a task, and waits for its end if that is wanted.
func (s *settings) giveTask(ctx context.Context, c *connection, kind, cluster string, t tasking) error {
	spec := t.spec
	for _, known := range v1alpha1.TaskTypes() {
		if strings.EqualFold(string(known), kind) {
			spec.Type = known
		}
	}
	if why, known := noTasks[strings.ToLower(kind)]; known {
		return fmt.Errorf("%s is no task: %s", kind, why)
	}
	if spec.Type == "" {
		return fmt.Errorf("%q is no type of task: want one of %s", kind, typesInWords())
	}
	if _, err := c.cluster(ctx, cluster); err != nil {
		return err
	}
	t.spec = spec
	return s.createTask(ctx, c, cluster, t)
}

// createTask of a type that is known.
func (s *settings) createTask(ctx context.Context, c *connection, cluster string, t tasking) error {
	spec := t.spec
	spec.Deadline, spec.TTLAfterFinished = &metav1.Duration{Duration: t.deadline}, &metav1.Duration{Duration: t.ttl}
	if t.primaryRange {
		spec.PrimaryRange = &t.primaryRange
	}
	if t.incremental {
		spec.Incremental = &t.incremental
	}
	if t.split {
		spec.Split = &t.split
	}
	if t.snapshotTTL != 0 {
		spec.SnapshotTTL = &metav1.Duration{Duration: t.snapshotTTL}
	}
	task := &v1alpha1.CassandraTask{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace,
		GenerateName: strings.ToLower(string(spec.Type)) + "-" + cluster + "-"},
		Spec: v1alpha1.CassandraTaskSpec{Cluster: v1alpha1.TaskCluster{Name: cluster}, TaskTemplate: spec}}
	if err := c.client.Create(ctx, task); err != nil {
		return fmt.Errorf("create CassandraTask: %w", err)
	}
	if !t.wait {
		_, err := fmt.Fprintf(s.streams.Out,
			"CassandraTask %s is created; kubectl get casstask %s shows how far it is\n", task.Name, task.Name)
		return err
	}
	return s.awaitTask(ctx, c, task)
}

// awaitTask says how far a task is until it has finished. One that has failed is an error.
func (s *settings) awaitTask(ctx context.Context, c *connection, task *v1alpha1.CassandraTask) error {
	return s.await(ctx, c, "CassandraTask", task, func() (string, string, bool, bool) {
		of := &task.Status
		return fmt.Sprintf("%s %s %s", of.Phase, of.Progress, of.Message), of.Message, of.Finished(),
			of.Phase == v1alpha1.TaskSucceeded
	})
}

// await says how far an object is until it has finished, once in each word. If it has not succeeded
// that is an error.
func (s *settings) await(ctx context.Context, c *connection, kind string, object client.Object,
	far func() (says, why string, finished, succeeded bool)) error {
	said, why, succeeded := "", "", false
	err := wait.PollUntilContextCancel(ctx, taskPoll, true, func(ctx context.Context) (bool, error) {
		if err := c.client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return false, err
		}
		var line string
		var finished bool
		line, why, finished, succeeded = far()
		if line = oneLine(line); line == said {
			return finished, nil
		}
		said = line
		_, err := fmt.Fprintf(s.streams.Out, "%s: %s\n", object.GetName(), line)
		return finished, err
	})
	if err != nil {
		return fmt.Errorf("wait for %s %s: %w", kind, object.GetName(), err)
	}
	if !succeeded {
		return fmt.Errorf("%s %s has failed: %s", kind, object.GetName(), why)
	}
	return nil
}
