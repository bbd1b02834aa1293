package apiserver

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Collector is the garbage collector: it deletes what no owner is left of. When it looks is the
// world's business.
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
