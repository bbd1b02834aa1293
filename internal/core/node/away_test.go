package node

import (
	"testing"
	"time"
)

// A table with a short gc_grace must not keep a node from a restart that takes seconds: NORMAL is
// written down only every few minutes.
func TestAShortGraceDoesNotBlockAQuickRestart(t *testing.T) {
	f := member()
	f.Memory.GCGrace, f.Memory.NormalAt = time.Minute, ptr(-normalEvery)
	if got := checkGCGrace(&pass{Facts: &f, now: at(0)}); got != done {
		t.Errorf("outcome %+v, want none", got)
	}
	f.Memory.NormalAt = ptr(-normalEvery - 2*time.Minute)
	if got := checkGCGrace(&pass{Facts: &f, now: at(0)}); got == done {
		t.Error("a node that was away for two minutes longer was let start")
	}
}

// Deletions are forgotten only by nodes that are up. Those of an adopted cluster were all down.
// What worked there says nothing of this cluster's spec.
func TestAnAdoptedDiskWasNotAway(t *testing.T) {
	f := member()
	f.Memory.ClusterUID, f.Memory.NormalAt = "earlier", ptr(-1000*time.Hour)
	f.Memory.Proven = &ProvenMemory{PodTemplate: "template"}
	m := After(&f, ClaimDisk{Cluster: f.Self.ClusterUID})
	if m.NormalAt != nil || m.Proven != nil || m.ClusterUID != f.Self.ClusterUID {
		t.Errorf("last NORMAL at %v of cluster %s, want nothing of this one", m.NormalAt, m.ClusterUID)
	}
	f.Memory.ClusterUID = f.Self.ClusterUID
	if m := After(&f, ClaimDisk{Cluster: f.Self.ClusterUID}); m.NormalAt == nil {
		t.Error("the node's own disk forgot when it was NORMAL")
	}
}
