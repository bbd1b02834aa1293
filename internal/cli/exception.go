package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
)

// oneNode is the argument of what is about one node.
func oneNode(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return fmt.Errorf("name one CassandraNode: %s NODE; kubectl get cassandranodes shows which there are",
		cmd.CommandPath())
}

func checkLength(length time.Duration) error {
	if length <= 0 || length > 7*24*time.Hour {
		return fmt.Errorf("--for is %s: want a time of at most 168h", length)
	}
	return nil
}

// nodeAndCluster are a node by its name, and the cluster that it is of.
func (c *connection) nodeAndCluster(ctx context.Context, name string) (*v1alpha1.CassandraNode,
	*v1alpha1.CassandraCluster, error) {
	node := &v1alpha1.CassandraNode{}
	if err := c.client.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, node); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil, fmt.Errorf("there is no CassandraNode %q in namespace %q: kubectl get cassandranodes "+
				"shows which there are", name, c.namespace)
		}
		return nil, nil, fmt.Errorf("get CassandraNode %s: %w", name, err)
	}
	cluster, err := c.cluster(ctx, node.Spec.Cluster.Name)
	return node, cluster, err
}

// exception of a type for a node.
func (s *settings) exception(kind v1alpha1.ExceptionType, node *v1alpha1.CassandraNode, reason string,
	length time.Duration) v1alpha1.Exception {
	return v1alpha1.Exception{
		Name: strings.ToLower(string(kind)) + "-" + node.Name, Type: kind, Node: node.Name, Reason: reason,
		Until: metav1.NewTime(s.now().Add(length)).Rfc3339Copy(),
	}
}

// isException says of an exception that it is of a type and for a node.
func isException(kind v1alpha1.ExceptionType, node string) func(v1alpha1.Exception) bool {
	return func(e v1alpha1.Exception) bool { return e.Type == kind && e.Node == node }
}

// setException writes the exceptions of a type for a node as the user, in place of those that there
// are, unless the cluster has changed since it was read.
func (c *connection) setException(ctx context.Context, cluster *v1alpha1.CassandraCluster,
	kind v1alpha1.ExceptionType, node string, now ...v1alpha1.Exception) error {
	return c.setExceptions(ctx, cluster, isException(kind, node), now...)
}

// setExceptions is setException for those that a function is true of.
func (c *connection) setExceptions(ctx context.Context, cluster *v1alpha1.CassandraCluster,
	these func(v1alpha1.Exception) bool, now ...v1alpha1.Exception) error {
	before := cluster.DeepCopy()
	cluster.Spec.Exceptions = append(slices.DeleteFunc(cluster.Spec.Exceptions, these), now...)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.client.Patch(ctx, cluster, patch); err != nil {
		return fmt.Errorf("change spec.exceptions of CassandraCluster %s: %w", cluster.Name, err)
	}
	return nil
}

// word is what a person asks for one node, and is written as an exception.
type word struct {
	kind          v1alpha1.ExceptionType
	reason        string
	length        time.Duration
	use           string
	short, long   string
	said, example string
	// check refuses it, and complete adds to the exception what it takes from the node.
	check    func(node *v1alpha1.CassandraNode, cluster *v1alpha1.CassandraCluster) error
	complete func(e *v1alpha1.Exception, node *v1alpha1.CassandraNode)
}

func (s *settings) command(w word) *cobra.Command {
	cmd := &cobra.Command{
		Use: w.use + " NODE", Short: w.short, Long: w.long, Args: oneNode,
		Example: "  kubectl helenus " + w.use + " orders-dc1-r1-0 --reason '" + w.example + "'",
		RunE: s.connected(func(ctx context.Context, c *connection, args []string) error {
			return s.give(ctx, c, args[0], w)
		}),
	}
	cmd.Flags().StringVar(&w.reason, "reason", "", "why, for others to read")
	cmd.Flags().DurationVar(&w.length, "for", 24*time.Hour, "how long it holds, at most 168h")
	return cmd
}

// give writes the word into the spec of the node's cluster.
func (s *settings) give(ctx context.Context, c *connection, name string, w word) error {
	if w.reason == "" {
		return errors.New("say why by --reason: others see what was decided, and wonder")
	}
	if err := checkLength(w.length); err != nil {
		return err
	}
	node, cluster, err := c.nodeAndCluster(ctx, name)
	if err != nil {
		return err
	}
	if err := w.check(node, cluster); err != nil {
		return err
	}
	e := s.exception(w.kind, node, w.reason, w.length)
	if w.complete != nil {
		w.complete(&e, node)
	}
	if err := c.setException(ctx, cluster, w.kind, name, e); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.streams.Out, "node %s %s; kubectl helenus status %s shows how far it is\n", name, w.said,
		cluster.Name)
	return err
}

var startAnyway = word{
	kind: v1alpha1.ExceptionStartAnyway, use: "start-anyway", said: "may start",
	example: "its tables are never deleted from",
	short:   "Let a node start that was down for longer than deletions are kept",
	long: `Lets a node start that is in phase DownTooLong. It was down for longer than the other
nodes keep deletions: rows that were deleted meanwhile can come back, and be copied to
all replicas.

It writes an exception for the node and its host id into the spec of the
CassandraCluster, with your rights. The node must be repaired afterwards:
kubectl helenus repair NODE.`,
	check: func(node *v1alpha1.CassandraNode, cluster *v1alpha1.CassandraCluster) error {
		if node.Spec.Member == nil {
			return fmt.Errorf("node %s is no member of the ring: it needs no leave to start; kubectl "+
				"helenus status %s shows what it waits for", node.Name, cluster.Name)
		}
		if node.Status.Phase != v1alpha1.PhaseDownTooLong {
			return fmt.Errorf("node %s is in phase %s: only a node in phase %s needs leave to start", node.Name,
				node.Status.Phase, v1alpha1.PhaseDownTooLong)
		}
		return nil
	},
	complete: func(e *v1alpha1.Exception, node *v1alpha1.CassandraNode) { e.HostID = node.Spec.Member.HostID },
}

var replace = word{
	kind: v1alpha1.ExceptionReplace, use: "replace", said: "is replaced as soon as the ring allows it",
	example: "its disk is gone",
	short:   "Have a node replaced for which that is recommended",
	long: `Has a node replaced whose disk or host is lost, where spec.replacement.mode is Recommend
and status.recommended names it: another member takes its place, with the same name, rack
and tokens. What the lost one had alone is lost, and it never starts again. It writes an
exception into the spec of the CassandraCluster, with your rights.

With --planned the disk of a node is given up that is not lost, to have it on another
host, or since its disk is bad: the node is stopped in order, the others are repaired, and
it joins in its own place on new volumes. It creates a CassandraTask, with your rights;
until the node leaves its disk, deleting the task has it start again on that.`,
	check: func(node *v1alpha1.CassandraNode, cluster *v1alpha1.CassandraCluster) error {
		if !slices.ContainsFunc(cluster.Status.Recommended, func(r v1alpha1.Recommendation) bool {
			return r.Operation == "Replace" && slices.Contains(r.Nodes, node.Name)
		}) {
			return fmt.Errorf("no replacement of node %s is recommended: status.recommended of CassandraCluster %s "+
				"does not name it. To give up the disk of a node that is not lost: --planned", node.Name, cluster.Name)
		}
		return nil
	},
}

// newReplace has a lost node replaced, or gives up the disk of another by a task.
func newReplace(s *settings) *cobra.Command {
	cmd, planned, wait := s.command(replace), false, false
	lost := cmd.RunE
	cmd.Example += "\n  kubectl helenus replace orders-dc1-r1-0 --planned --wait"
	cmd.Flags().BoolVar(&planned, "planned", false, "give up the disk of a node that is not lost")
	cmd.Flags().BoolVar(&wait, "wait", false, "with --planned: wait until it has finished")
	task := s.connected(func(ctx context.Context, c *connection, args []string) error {
		return s.giveUpDisk(ctx, c, args[0], wait)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if planned {
			return task(cmd, args)
		}
		return lost(cmd, args)
	}
	return cmd
}

func (s *settings) giveUpDisk(ctx context.Context, c *connection, name string, wait bool) error {
	node, _, err := c.nodeAndCluster(ctx, name)
	if err != nil {
		return err
	}
	return s.giveTask(ctx, c, string(v1alpha1.TaskReplace), node.Spec.Cluster.Name, tasking{wait: wait,
		deadline: 24 * time.Hour, ttl: 24 * time.Hour, spec: v1alpha1.TaskTemplate{Nodes: []string{name}}})
}

var removeFirst = word{
	kind: v1alpha1.ExceptionRemoveFirst, use: "remove-first",
	said: "leaves first, once the spec has fewer nodes of its rack", example: "its host goes",
	short: "Have a node leave before others of its rack",
	long: `Has a node leave before others of its rack when the spec has fewer of them than there
are, and in the order in which those of a rack leave that is taken out. Otherwise the one
with the highest ordinal does. The others keep their names.

It writes an exception into the spec of the CassandraCluster, with your rights. Then lower
the number of nodes, while it holds.`,
	check: func(node *v1alpha1.CassandraNode, cluster *v1alpha1.CassandraCluster) error {
		if node.Spec.Member == nil {
			return fmt.Errorf("node %s is no member of the ring: kubectl helenus status %s shows what it waits for",
				node.Name, cluster.Name)
		}
		return nil
	},
}

var repair = word{
	kind: v1alpha1.ExceptionRepair, use: "repair", said: "is repaired as soon as every member is up",
	example: "it was down for a day",
	short:   "Have a node repaired for which that is recommended",
	long: `Has a node repaired (nodetool repair --full, all replicated keyspaces) for which
status.recommended says that it must be: it lacks writes that the other replicas have. It
begins when all members are up, and ends the recommendation when it has succeeded.

It writes an exception into the spec of the CassandraCluster, with your rights.`,
	check: func(node *v1alpha1.CassandraNode, cluster *v1alpha1.CassandraCluster) error {
		recommended := slices.ContainsFunc(cluster.Status.Recommended, func(r v1alpha1.Recommendation) bool {
			return r.Operation == string(v1alpha1.OperationRepair) && slices.Contains(r.Nodes, node.Name)
		})
		scheduled := slices.ContainsFunc(cluster.Status.Notices, func(n v1alpha1.Notice) bool {
			return n.Reason == v1alpha1.NoticeRepairScheduled && slices.Contains(n.Nodes, node.Name)
		})
		if !recommended && !scheduled && len(node.Status.RepairDue) == 0 {
			return fmt.Errorf("no repair of node %s is due: status.recommended of CassandraCluster %s does not "+
				"name it", node.Name, cluster.Name)
		}
		return nil
	},
}

var rolesReady = word{
	kind: v1alpha1.ExceptionRolesReady, use: "roles-ready",
	said:    "opens to clients, and others ask for passwords after it",
	example: "orders and billing have their roles",
	short:   "Say that the roles of your applications are made",
	long: `Says that the roles of your applications are made at NODE, the first node of a ring to ask
for passwords: it opens to clients, is watched for the soak, and the others follow.

It writes an exception into the spec of the CassandraCluster, with your rights.`,
	check: func(node *v1alpha1.CassandraNode, cluster *v1alpha1.CassandraCluster) error {
		if !slices.ContainsFunc(cluster.Status.Blocked, func(b v1alpha1.BlockedStep) bool {
			return b.Reason == v1alpha1.BlockedRolesNotReady && slices.Contains(b.Nodes, node.Name)
		}) {
			return fmt.Errorf("node %s does not wait for roles: status.blocked of CassandraCluster %s has no %s for it",
				node.Name, cluster.Name, v1alpha1.BlockedRolesNotReady)
		}
		return nil
	},
}
