package observe

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/render"
)

// Hashes are kept while a record is the same version of the same one, and no longer.
func TestHashesOfRecords(t *testing.T) {
	record := func(uid types.UID, version, image string) *facts.Snapshot {
		r := &v1alpha1.CassandraNode{ObjectMeta: metav1.ObjectMeta{Name: first, UID: uid, ResourceVersion: version}}
		r.Spec.Pod.Image = image
		return &facts.Snapshot{Nodes: map[string]*facts.Node{first: {Name: first, Record: r},
			"pod-alone": {Name: "pod-alone"}}}
	}
	var h hashes
	seen := record("u", "1", "one")
	h.fill(orders, seen)
	before := seen.Nodes[first].Hashes
	for _, c := range []struct {
		name string
		now  *facts.Snapshot
		kept bool
	}{
		{"the same", record("u", "1", "one"), true},
		{"changed", record("u", "2", "two"), false},
		{"recreated", record("v", "2", "three"), false},
	} {
		h.fill(orders, c.now)
		n := c.now.Nodes[first]
		if got := n.KnownHashes(); got == nil || *got != *render.HashesOf(n.Record) {
			t.Errorf("%s: hashes %+v, want %+v", c.name, got, render.HashesOf(n.Record))
		}
		if kept := n.Hashes == before; kept != c.kept {
			t.Errorf("%s: kept %v, want %v", c.name, kept, c.kept)
		}
	}
	if h.fill(orders, &facts.Snapshot{Nodes: map[string]*facts.Node{}}); len(h.known[orders]) != 0 {
		t.Errorf("%d hashes of records that are gone", len(h.known[orders]))
	}
	if h.forget(orders); len(h.known) != 0 {
		t.Error("a cluster that is forgotten is known")
	}
}
