package safeguard

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/observe"
	"helenus.io/helenus/internal/operator"
	"helenus.io/helenus/internal/simulate/world"
)

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

// writing has operators write with another client, one for each.
func writing(with func(client.Client) client.Client) world.Wrap {
	return world.Wrap{Client: func(_ *world.Operator, c client.Client) client.Client { return with(c) }}
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
