package apiserver

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Collector is the garbage collector: it deletes what no owner is left of, and does what the
// deletion of an owner in the foreground, or as orphan, asks of it. When it looks is the world's
// business.
type Collector struct{ server *Server }

// NewCollector makes one.
func NewCollector(s *Server) *Collector { return &Collector{s} }

// Collect deletes all objects that have owners of which none exists any more. What these own goes
// at the next call.
func (c *Collector) Collect() {
	there := map[types.UID]bool{}
	for _, k := range c.server.kinds.all {
		for _, v := range c.server.table(k).objects {
			there[v.uid()] = true
		}
	}
	c.propagate()
	for _, k := range c.server.kinds.all {
		for _, key := range slices.Clone(c.server.table(k).keys) {
			v := c.server.find(k, key)
			if v == nil || v.typed.GetDeletionTimestamp() != nil || !orphaned(v.typed, there) {
				continue
			}
			uid := v.uid()
			w := &writing{
				Server: c.server, ctx: context.Background(), kind: k, key: key,
				request: &Request{User: "garbage-collector", Verb: Delete, Kind: k.Kind, Namespace: key.Namespace,
					Name: key.Name, resource: k.resource},
			}
			// What cannot be deleted now was changed a moment ago, and is looked at again.
			_ = w.delete(&metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		}
	}
}

func orphaned(object client.Object, there map[types.UID]bool) bool {
	owners := object.GetOwnerReferences()
	return len(owners) > 0 && !slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return there[o.UID] })
}

// propagate takes the dependents of what is deleted as orphan from it, and deletes those of what is
// deleted in the foreground; then it lets the owner go.
func (c *Collector) propagate() {
	me := c.server.As("garbage-collector")
	var all []client.Object
	for _, k := range c.server.kinds.all {
		for _, key := range c.server.table(k).keys {
			if !k.rules.uncollected {
				all = append(all, c.server.find(k, key).typed)
			}
		}
	}
	for _, owner := range all {
		orphans := slices.Contains(owner.GetFinalizers(), metav1.FinalizerOrphanDependents)
		if owner.GetDeletionTimestamp() == nil ||
			!orphans && !slices.Contains(owner.GetFinalizers(), metav1.FinalizerDeleteDependents) {
			continue
		}
		owns := func(o metav1.OwnerReference) bool { return o.UID == owner.GetUID() }
		blocked := false
		for _, dependent := range all {
			at := slices.IndexFunc(dependent.GetOwnerReferences(), owns)
			switch {
			case at < 0:
			case orphans:
				now := dependent.DeepCopyObject().(client.Object)
				now.SetOwnerReferences(slices.DeleteFunc(now.GetOwnerReferences(), owns))
				blocked = me.Update(context.Background(), now) != nil || blocked
			default:
				block := dependent.GetOwnerReferences()[at].BlockOwnerDeletion
				blocked = blocked || block != nil && *block
				if dependent.GetDeletionTimestamp() == nil {
					uid := dependent.GetUID()
					_ = me.Delete(context.Background(), dependent.DeepCopyObject().(client.Object),
						client.PropagationPolicy(metav1.DeletePropagationForeground), client.Preconditions{UID: &uid})
				}
			}
		}
		if !blocked {
			now := owner.DeepCopyObject().(client.Object)
			now.SetFinalizers(slices.DeleteFunc(now.GetFinalizers(), func(f string) bool {
				return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
			}))
			_ = me.Update(context.Background(), now) // what was changed a moment ago is looked at again
		}
	}
}
