package safeguard

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/observe"
	"helenus.io/helenus/internal/operator"
	"helenus.io/helenus/internal/simulate/world"
)

// Most of the published bugs cannot happen in Helenus for want of the code in which they were:
// there is no safeguard to take away. So wrappers make of the real operator one that is like those
// in the one point that counts. Each such operator has to come to the right end where nothing goes
// wrong, so that what catches it is the bug.

// seeing has operators decide on another view than their cache's, and be sure of what another
// reader than the API server tells them.
func seeing(view func(o *world.Operator, cache, live client.Reader) (client.Reader, client.Reader)) world.Wrap {
	made := map[*operator.Reconciler]*operator.Reconciler{}
	return world.Wrap{Pass: func(o *world.Operator, r *operator.Reconciler) *operator.Reconciler {
		if made[r] == nil {
			cache, live := view(o, r.Reader.Cache, r.Reader.Live)
			reader := &observe.Reader{Cache: cache, Live: live, Agents: r.Reader.Agents, Install: r.Reader.Install,
				Now: r.Reader.Now}
			made[r] = &operator.Reconciler{Reader: reader, Writer: r.Writer, Status: r.Status, Metrics: r.Metrics,
				Now: r.Now}
		}
		return made[r]
	}}
}

// namesakes shows objects of the name of a cluster as if they were that cluster's, whichever they
// are of: those of which it is asked to. The others it counts.
type namesakes struct {
	client.Reader
	these func(client.Object) bool
	// others counts what was shown and is of another cluster of the name, by kind.
	others map[string]int
}

func (n namesakes) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := n.Reader.List(ctx, list, options...); err != nil {
		return err
	}
	cluster := &v1alpha1.CassandraCluster{}
	if err := n.Get(ctx, keyOf(clusterName), cluster); err != nil {
		return client.IgnoreNotFound(err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	for i := range items {
		object := items[i].DeepCopyObject().(client.Object)
		labels := object.GetLabels()
		if labels[v1alpha1.LabelCluster] != clusterName || labels[v1alpha1.LabelClusterUID] == string(cluster.UID) {
			continue
		}
		n.others[fmt.Sprintf("%T", object)]++
		if n.these(object) {
			labels[v1alpha1.LabelClusterUID] = string(cluster.UID)
			items[i] = object
		}
	}
	return meta.SetList(list, items)
}

// byName are operators to which objects are a cluster's by its name.
func byName(these func(client.Object) bool, others map[string]int) world.Wrap {
	return seeing(func(_ *world.Operator, cache, live client.Reader) (client.Reader, client.Reader) {
		return namesakes{cache, these, others}, live
	})
}

func all(client.Object) bool  { return true }
func none(client.Object) bool { return false }

// finalizing is a standby that deletes, as soon as it leads, the claim of every pod that it sees
// going. The claim is the one that it sees, by its uid.
func finalizing() world.Wrap {
	return world.Wrap{Pass: func(o *world.Operator, r *operator.Reconciler) *operator.Reconciler {
		ctx := context.Background()
		var pods corev1.PodList
		if o.Name() != theStandby || r.Reader.Cache.List(ctx, &pods) != nil {
			return r
		}
		for i := range pods.Items {
			claim := &corev1.PersistentVolumeClaim{}
			key := keyOf(v1alpha1.ClaimName(v1alpha1.VolumeData, pods.Items[i].Name))
			if pods.Items[i].DeletionTimestamp != nil && r.Reader.Cache.Get(ctx, key, claim) == nil {
				_ = r.Writer.Client.Delete(ctx, claim, client.Preconditions{UID: &claim.UID})
			}
		}
		return r
	}}
}

// witnessing shows of a cluster that is being deleted the claims of those pods alone that were seen
// going.
type witnessing struct {
	client.Reader
	cache client.Reader
	going map[string]bool
}

// look is what is done whenever something has happened.
func (w witnessing) look(ctx context.Context) {
	var pods corev1.PodList
	if w.cache.List(ctx, &pods) != nil {
		return
	}
	for i := range pods.Items {
		w.going[pods.Items[i].Name] = w.going[pods.Items[i].Name] || pods.Items[i].DeletionTimestamp != nil
	}
}

// hidden says that a claim is not shown.
func (w witnessing) hidden(ctx context.Context, claim *corev1.PersistentVolumeClaim) bool {
	cluster := &v1alpha1.CassandraCluster{}
	return w.cache.Get(ctx, keyOf(clusterName), cluster) == nil && cluster.DeletionTimestamp != nil &&
		!w.going[claim.Labels[v1alpha1.LabelNode]]
}

func (w witnessing) Get(ctx context.Context, key client.ObjectKey, object client.Object,
	options ...client.GetOption) error {
	err := w.Reader.Get(ctx, key, object, options...)
	if claim, is := object.(*corev1.PersistentVolumeClaim); is && err == nil && w.hidden(ctx, claim) {
		return apierrors.NewNotFound(corev1.Resource("persistentvolumeclaims"), key.Name)
	}
	return err
}

func (w witnessing) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := w.Reader.List(ctx, list, options...); err != nil {
		return err
	}
	if l, is := list.(*corev1.PersistentVolumeClaimList); is {
		l.Items = slices.DeleteFunc(l.Items, func(c corev1.PersistentVolumeClaim) bool { return w.hidden(ctx, &c) })
	}
	return nil
}

// byEvents are operators that delete the claims of pods which they saw going, instead of those that
// are there.
func byEvents() world.Wrap {
	views := map[*world.Operator]witnessing{}
	w := seeing(func(o *world.Operator, cache, live client.Reader) (client.Reader, client.Reader) {
		going := map[string]bool{}
		views[o] = witnessing{cache, cache, going}
		return views[o], witnessing{live, cache, going}
	})
	pass := w.Pass
	w.Pass = func(o *world.Operator, r *operator.Reconciler) *operator.Reconciler {
		r = pass(o, r)
		views[o].look(context.Background())
		return r
	}
	return w
}

// renewing is a client that changes a budget by deleting it and making it again.
type renewing struct{ client.Client }

func (r renewing) Patch(ctx context.Context, object client.Object, patch client.Patch,
	options ...client.PatchOption) error {
	budget, is := object.(*policyv1.PodDisruptionBudget)
	if !is {
		return r.Client.Patch(ctx, object, patch, options...)
	}
	if err := r.Delete(ctx, budget.DeepCopy()); client.IgnoreNotFound(err) != nil {
		return err
	}
	budget.UID, budget.ResourceVersion = "", ""
	return r.Create(ctx, budget)
}

// oneFewer shows what is of the nodes that the spec describes, and of one more in each rack: what
// an operator takes away that compares a spec with the one that it saw last, and expects of it one
// node fewer.
type oneFewer struct{ client.Reader }

func (o oneFewer) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := o.Reader.List(ctx, list, options...); err != nil {
		return err
	}
	cluster := &v1alpha1.CassandraCluster{}
	if err := o.Get(ctx, keyOf(clusterName), cluster); err != nil {
		return client.IgnoreNotFound(err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	shown := items[:0]
	for _, item := range items {
		labels := item.(client.Object).GetLabels()
		node := labels[v1alpha1.LabelNode]
		ordinal, err := strconv.Atoi(node[strings.LastIndex(node, "-")+1:])
		if node == "" || err != nil || ordinal <= int(cluster.Spec.Datacenters[0].NodesPerRack) {
			shown = append(shown, item)
		}
	}
	return meta.SetList(list, shown)
}

// twoSpecs are operators that know of no other nodes than those of the present spec and the one
// before.
func twoSpecs() world.Wrap {
	return seeing(func(_ *world.Operator, cache, live client.Reader) (client.Reader, client.Reader) {
		return oneFewer{cache}, oneFewer{live}
	})
}

// together is a client of an operator that makes certificates along with their authority: if the
// authority is there, so are they.
type together struct {
	client.Client
	made *bool
}

func (c together) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	if _, secret := object.(*corev1.Secret); !secret {
		return c.Client.Create(ctx, object, options...)
	}
	if object.GetName() != v1alpha1.AuthorityName(clusterName, v1alpha1.UseAgent) {
		if !*c.made {
			return nil
		}
		return c.Client.Create(ctx, object, options...)
	}
	err := c.Client.Create(ctx, object, options...)
	*c.made = err == nil
	return err
}

// writing has operators write with another client, one for each.
func writing(with func(client.Client) client.Client) world.Wrap {
	return world.Wrap{Client: func(_ *world.Operator, c client.Client) client.Client { return with(c) }}
}

// givesTicket says that a patch of a record gives its node a ticket.
func givesTicket(object client.Object, patch client.Patch) bool {
	var content struct {
		Spec struct{ Join *v1alpha1.JoinTicket }
	}
	if _, record := object.(*v1alpha1.CassandraNode); !record {
		return false
	}
	text, err := patch.Data(object)
	return err == nil && json.Unmarshal(text, &content) == nil && content.Spec.Join != nil
}

// callsOnce is a client of an operator that calls the nodes only just after it wrote down that they
// start: a step that it finds open was called already.
type callsOnce struct {
	client.Client
	opened *bool
}

func (c callsOnce) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	err := c.Client.Update(ctx, object, options...)
	if m, config := object.(*corev1.ConfigMap); err == nil && config && m.Name == ledgerKey.Name {
		l, unread := ledger.Decode(m.Data, types.UID(m.Labels[v1alpha1.LabelClusterUID]))
		*c.opened = *c.opened || unread == nil && l.Step != nil
	}
	return err
}

func (c callsOnce) Patch(ctx context.Context, object client.Object, patch client.Patch,
	options ...client.PatchOption) error {
	if !*c.opened && givesTicket(object, patch) {
		return nil
	}
	return c.Client.Patch(ctx, object, patch, options...)
}

// gate keeps an operator from seeing another spec while it is shut.
type gate struct {
	shut func(cache client.Reader) bool
	spec *v1alpha1.CassandraClusterSpec
	// generation of that spec, and how often another one was kept from the operator.
	generation int64
	kept       *int
}

// gated reads through a gate.
type gated struct {
	client.Reader
	cache client.Reader
	gate  *gate
}

func (g gated) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if err := g.Reader.Get(ctx, key, object, options...); err != nil {
		return err
	}
	cluster, is := object.(*v1alpha1.CassandraCluster)
	if !is {
		return nil
	}
	if g.gate.spec == nil || !g.gate.shut(g.cache) {
		g.gate.spec, g.gate.generation = cluster.Spec.DeepCopy(), cluster.Generation
	}
	if cluster.Generation != g.gate.generation {
		*g.gate.kept++
		g.gate.spec.DeepCopyInto(&cluster.Spec)
		cluster.Generation = g.gate.generation
	}
	return nil
}

// gating are operators that do not look at a spec while the gate is shut.
func gating(shut func(cache client.Reader) bool, kept *int) world.Wrap {
	return seeing(func(_ *world.Operator, cache, live client.Reader) (client.Reader, client.Reader) {
		g := &gate{shut: shut, kept: kept}
		return gated{cache, cache, g}, gated{live, cache, g}
	})
}

// underWay says that a step is open.
func underWay(cache client.Reader) bool {
	m := &corev1.ConfigMap{}
	if cache.Get(context.Background(), ledgerKey, m) != nil {
		return false
	}
	l, err := ledger.Decode(m.Data, types.UID(m.Labels[v1alpha1.LabelClusterUID]))
	return err == nil && l.Step != nil
}

// unready says that there is a pod that is not ready.
func unready(cache client.Reader) bool {
	var pods corev1.PodList
	return cache.List(context.Background(), &pods) == nil && slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool {
		return !slices.ContainsFunc(p.Status.Conditions,
			func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
	})
}

// adding is a client that takes nothing away from what a record says of the user's spec.
type adding struct{ client.Client }

func (a adding) Patch(ctx context.Context, object client.Object, patch client.Patch,
	options ...client.PatchOption) error {
	text, err := patch.Data(object)
	if err != nil {
		return err
	}
	content := map[string]any{}
	if err := json.Unmarshal(text, &content); err != nil {
		return fmt.Errorf("read patch: %w", err)
	}
	if spec, is := content["spec"].(map[string]any); is {
		dropNulls(spec["pod"])
		dropNulls(spec["configuration"])
	}
	if text, err = json.Marshal(content); err != nil {
		return fmt.Errorf("write patch: %w", err)
	}
	return a.Client.Patch(ctx, object, client.RawPatch(patch.Type(), text), options...)
}

func dropNulls(value any) {
	content, is := value.(map[string]any)
	if !is {
		return
	}
	maps.DeleteFunc(content, func(_ string, value any) bool { return value == nil })
	for _, inner := range content {
		dropNulls(inner)
	}
}
