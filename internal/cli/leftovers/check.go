package leftovers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/words"
)

// ErrHeld says that something would hang without an operator.
var ErrHeld = errors.New("something would hang or be left if Helenus were removed now: what helps is said above")

// Check says what would be left if Helenus were removed from a Kubernetes cluster, and what would
// hang. It changes nothing. Operator is what is known of the operator.
func Check(ctx context.Context, c client.Client, operator string, out io.Writer) error {
	clusters := &v1alpha1.CassandraClusterList{}
	err := c.List(ctx, clusters)
	if meta.IsNoMatchError(err) {
		_, err := io.WriteString(out, "The definitions of Helenus are not there: nothing of its kinds can be left.\n")
		return err
	}
	if err != nil {
		return fmt.Errorf("list CassandraClusters: %w", err)
	}
	found, err := findAnywhere(ctx, c, clusters)
	if err != nil {
		return err
	}
	var said strings.Builder
	fmt.Fprintf(&said, "Operator: %s\n", operator)
	section := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(&said, "\n%s\n  %s\n", title, strings.Join(lines, "\n  "))
		}
	}
	var run, held []string
	for i := range clusters.Items {
		o := &clusters.Items[i]
		line := fmt.Sprintf("%s/%s, %s", o.Namespace, o.Name, words.Plural(int(o.Status.Nodes), "node"))
		if o.DeletionTimestamp != nil {
			held = append(held, line+": it is being deleted, and ends when the operator has taken it apart")
			continue
		}
		claims := "its claims stay when it is deleted"
		if o.Spec.Volumes.OnClusterDeletion == v1alpha1.ClaimDelete {
			claims = "its claims, and what is on them, go when it is deleted (spec.volumes.onClusterDeletion)"
		}
		run = append(run, line+": "+claims)
	}
	section("Run on without an operator, which nobody then repairs, and hang if they are deleted:", run)
	section("Hang without an operator:", held)
	section("Left by clusters that are gone:", found.lines())
	section("Claims of clusters that are gone, which stay and can be taken over by spec.bootstrap.adopt:", found.claims)
	if len(held)+len(found.of) == 0 {
		said.WriteString("\nNothing hangs: the operator can be removed.\n")
	}
	if _, err := io.WriteString(out, said.String()); err != nil {
		return err
	}
	if len(held)+len(found.of) > 0 {
		return ErrHeld
	}
	return nil
}

// anywhere is what clusters that are gone have left, in all namespaces.
type anywhere struct {
	// of counts objects by kind, by namespace and name of the cluster.
	of     map[types.NamespacedName]map[string]int
	claims []string
}

func (a *anywhere) lines() []string {
	var out []string
	for of, kinds := range a.of {
		var counts []string
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			counts = append(counts, words.Plural(kinds[kind], kind))
		}
		out = append(out, fmt.Sprintf("%s/%s, %s: kubectl helenus clear-leftovers %s --namespace %s", of.Namespace,
			of.Name, strings.Join(counts, ", "), of.Name, of.Namespace))
	}
	slices.Sort(out)
	return out
}

// findAnywhere lists what belongs to no cluster that is there. Secrets are not among it: whoever
// may not read all of them can check all the same, and none is without what else a cluster has.
func findAnywhere(ctx context.Context, c client.Client, present *v1alpha1.CassandraClusterList) (*anywhere, error) {
	uids := map[string]bool{}
	for i := range present.Items {
		uids[string(present.Items[i].UID)] = true
	}
	out := &anywhere{of: map[types.NamespacedName]map[string]int{}}
	for _, list := range []client.ObjectList{
		&v1alpha1.CassandraNodeList{}, &corev1.PodList{}, &corev1.ServiceList{}, &policyv1.PodDisruptionBudgetList{},
		&networkingv1.NetworkPolicyList{},
		&rbacv1.RoleBindingList{}, &rbacv1.RoleList{}, &corev1.ServiceAccountList{}, &corev1.ConfigMapList{},
		&corev1.PersistentVolumeClaimList{},
	} {
		if err := c.List(ctx, list, client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}); err != nil {
			return nil, fmt.Errorf("list what is left in all namespaces: %w", err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return nil, fmt.Errorf("read %T: %w", list, err)
		}
		for _, item := range items {
			o := item.(client.Object)
			labels := o.GetLabels()
			if uid := labels[v1alpha1.LabelClusterUID]; uid == "" || uids[uid] {
				continue
			}
			if claim, is := o.(*corev1.PersistentVolumeClaim); is {
				out.claims = append(out.claims, claim.Namespace+"/"+claim.Name)
				continue
			}
			of := types.NamespacedName{Namespace: o.GetNamespace(), Name: labels[v1alpha1.LabelCluster]}
			if out.of[of] == nil {
				out.of[of] = map[string]int{}
			}
			out.of[of][kindOf(o)]++
		}
	}
	slices.Sort(out.claims)
	return out, nil
}
