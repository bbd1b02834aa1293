package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
)

const statusLong = `Shows what a cluster is like: its conditions, the step that is open or next and how far it
is, steps that are blocked, notices, and every node.

All of it is read from the CassandraCluster, its CassandraNodes and their pods, which the
operator and the agents keep up to date. It works while the operator is down, and says so.

READY says that a node serves clients: its agent says so, and Kubernetes agrees. TRAFFIC is
for whom CQL is open. RESTARTS are unrequested restarts of the JVM.`

func newStatus(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "status CLUSTER",
		Short: "Show what a cluster is like, and every node of it",
		Long:  statusLong,
		Example: "  kubectl helenus status orders\n  kubectl helenus status orders --namespace shop\n  watch kubectl " +
			"helenus status orders",
		Args: oneCluster,
		RunE: s.connected(func(ctx context.Context, c *connection, args []string) error {
			return s.status(ctx, c, args[0])
		}),
	}
}

// oneCluster says what is missing in words.
func oneCluster(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return fmt.Errorf("name one CassandraCluster: %s CLUSTER; kubectl get cassandraclusters --all-namespaces shows "+
		"which there are", cmd.CommandPath())
}

// clusterAnd are the arguments of what is about a cluster and something of it.
func clusterAnd(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 2 {
			return nil
		}
		return fmt.Errorf("name one CassandraCluster and %s: kubectl helenus %s; kubectl get cassandraclusters "+
			"--all-namespaces shows which clusters there are", what, cmd.Use)
	}
}

// status prints the status of a cluster.
func (s *settings) status(ctx context.Context, c *connection, name string) error {
	cluster, err := c.cluster(ctx, name)
	if err != nil {
		return err
	}
	view := statusView{cluster: cluster, now: s.now()}
	if view.nodes, err = c.nodes(ctx, cluster); err != nil {
		return err
	}
	if view.pods, err = c.pods(ctx, cluster); err != nil {
		return err
	}
	view.operator = s.health(ctx, c)
	var out bytes.Buffer
	view.print(&out)
	_, err = s.streams.Out.Write(out.Bytes())
	return err
}

// listOf lists what is of a cluster.
func (c *connection) listOf(ctx context.Context, cluster *v1alpha1.CassandraCluster, list client.ObjectList) error {
	return c.client.List(ctx, list, client.InNamespace(cluster.Namespace),
		client.MatchingLabels{v1alpha1.LabelCluster: cluster.Name, v1alpha1.LabelClusterUID: string(cluster.UID)})
}

// nodes are the records of a cluster, by datacenter, rack and ordinal.
func (c *connection) nodes(ctx context.Context, cluster *v1alpha1.CassandraCluster) ([]v1alpha1.CassandraNode, error) {
	list := &v1alpha1.CassandraNodeList{}
	if err := c.listOf(ctx, cluster, list); err != nil {
		return nil, fmt.Errorf("list CassandraNodes: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.CassandraNode) int {
		return cmp.Or(strings.Compare(a.Spec.Datacenter, b.Spec.Datacenter), strings.Compare(a.Spec.Rack, b.Spec.Rack),
			int(a.Spec.Ordinal-b.Spec.Ordinal))
	})
	return list.Items, nil
}

// pods are those of a cluster by name; nil if the user may not see them.
func (c *connection) pods(ctx context.Context, cluster *v1alpha1.CassandraCluster) (map[string]corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := c.listOf(ctx, cluster, list); err != nil {
		if apierrors.IsForbidden(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("list pods: %w", err)
	}
	pods := make(map[string]corev1.Pod, len(list.Items))
	for _, pod := range list.Items {
		pods[pod.Name] = pod
	}
	return pods, nil
}
