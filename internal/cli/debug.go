package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
)

const debugLong = `Has Cassandra on a node stopped in order, as soon as the ring allows it, and keeps its pod
for you to look into: kubectl exec -it NODE -c cassandra -- bash

It writes an exception into the spec of the CassandraCluster, with your rights. The node
starts again when the time is over, or with --end. The longest time is 7 days.`

type debugging struct {
	reason string
	length time.Duration
	end    bool
}

func newDebug(s *settings) *cobra.Command {
	var d debugging
	cmd := &cobra.Command{
		Use:   "debug NODE",
		Short: "Stop Cassandra on a node, and keep its pod to look into",
		Long:  debugLong,
		Example: "  kubectl helenus debug orders-dc1-r1-0 --reason 'copy a corrupt file' --for 2h\n" +
			"  kubectl helenus debug orders-dc1-r1-0 --end",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return fmt.Errorf("name one CassandraNode: %s NODE; kubectl get cassandranodes shows which there are",
				cmd.CommandPath())
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := s.connect()
			if err != nil {
				return err
			}
			return s.debug(cmd.Context(), c, args[0], d)
		},
	}
	cmd.Flags().StringVar(&d.reason, "reason", "", "why, for others to read")
	cmd.Flags().DurationVar(&d.length, "for", time.Hour, "how long, at most 168h")
	cmd.Flags().BoolVar(&d.end, "end", false, "start the node again")
	return cmd
}

// debug writes the exception of a node into the spec of its cluster, or takes it out.
func (s *settings) debug(ctx context.Context, c *connection, name string, d debugging) error {
	switch {
	case d.end && d.reason != "":
		return errors.New("--reason belongs to the beginning: --end takes none")
	case !d.end && d.reason == "":
		return errors.New("say why by --reason: others see that the node is stopped, and wonder")
	case !d.end && (d.length <= 0 || d.length > 7*24*time.Hour):
		return fmt.Errorf("--for is %s: want a time of at most 168h", d.length)
	}
	node := &v1alpha1.CassandraNode{}
	if err := c.client.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, node); err != nil {
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("there is no CassandraNode %q in namespace %q: kubectl get cassandranodes shows which "+
				"there are",
				name, c.namespace)
		}
		return fmt.Errorf("get CassandraNode %s: %w", name, err)
	}
	cluster, err := c.cluster(ctx, node.Spec.Cluster.Name)
	if err != nil {
		return err
	}
	before := cluster.DeepCopy()
	cluster.Spec.Exceptions = slices.DeleteFunc(cluster.Spec.Exceptions, func(e v1alpha1.Exception) bool {
		return e.Type == v1alpha1.ExceptionDebug && e.Node == name
	})
	said := fmt.Sprintf("node %s starts again\n", name)
	if d.end {
		if len(cluster.Spec.Exceptions) == len(before.Spec.Exceptions) {
			return fmt.Errorf("CassandraCluster %s has no exception of type Debug for node %s", cluster.Name, name)
		}
	} else {
		until := metav1.NewTime(s.now().Add(d.length)).Rfc3339Copy()
		cluster.Spec.Exceptions = append(cluster.Spec.Exceptions, v1alpha1.Exception{
			Name: "debug-" + name, Type: v1alpha1.ExceptionDebug, Node: name, Reason: d.reason, Until: until,
		})
		said = fmt.Sprintf("node %s stops until %s as soon as the ring allows it; "+
			"kubectl helenus status %s shows how far it is\n",
			name, until.UTC().Format(time.RFC3339), cluster.Name)
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.client.Patch(ctx, cluster, patch); err != nil {
		return fmt.Errorf("change spec.exceptions of CassandraCluster %s: %w", cluster.Name, err)
	}
	_, err = s.streams.Out.Write([]byte(said))
	return err
}
