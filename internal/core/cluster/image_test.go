package cluster

import (
	"strings"
	"testing"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/render"
)

// registry has the tags of cassandra, which move, and is how kubelet names what it pulls.
type registry map[string]string

func digest(of string) string { return "sha256:" + strings.Repeat(of, 64) }

func (r registry) pulled(image string) string {
	tag, by, pinned := strings.Cut(image, "@")
	if !pinned {
		by = r[tag]
	}
	return "docker.io/library/cassandra@" + by
}

// runsOn is a ring whose nodes pull from a registry, and that has pinned what they run.
func runsOn(t *testing.T, r registry) *world {
	t.Helper()
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	w.pulled = r.pulled
	w.settle()
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
	return w
}

func (w *world) wantImages(when string, images ...string) {
	w.t.Helper()
	for i, name := range three {
		if got := render.ImageOf(w.snapshot.Nodes[name].Pod, layout.CassandraContainer); got != images[i] {
			w.t.Errorf("%s: the pod of %s has image %s, want %s", when, name, got, images[i])
		}
	}
}

// deletePod has the pod of a node recreated.
func (w *world) deletePod(name string) {
	w.t.Helper()
	w.snapshot.Nodes[name].Pod = nil
	w.settle()
}

// The first node of a roll-out resolves the tag. The others get its digest and keep it when the tag
// moves. A change to another tag, or back, resolves that tag again.
func TestARollOutHasOneImage(t *testing.T) {
	r := registry{"cassandra:5.0.6": digest("a"), "cassandra:5.0.9": digest("b")}
	w := runsOn(t, r)
	old := "cassandra:5.0.6"
	w.wantImages("formed by tag", old, old, old)
	r[old] = digest("f")
	w.deletePod(three[2])
	w.wantImages("recreated", old, old, old+"@"+digest("a"))

	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Version = "5.0.9" })
	w.until(func(s *ledger.Step) bool {
		return s.Kind == ledger.RollOut && strings.Contains(string(s.State), "soakSince")
	})
	r["cassandra:5.0.9"] = digest("e")
	w.rolledOut()
	tag := "cassandra:5.0.9"
	w.wantImages("rolled out", tag, tag+"@"+digest("b"), tag+"@"+digest("b"))
	if made := w.settle(); w.snapshot.Ledger.Step != nil {
		t.Errorf("another step is open:\n%s", made)
	}
	w.deletePod(three[0])
	w.wantImages("rolled out, recreated", tag+"@"+digest("b"), tag+"@"+digest("b"), tag+"@"+digest("b"))

	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Version = "5.0.6" })
	w.rolledOut()
	w.wantImages("taken back", old, old+"@"+digest("f"), old+"@"+digest("f"))
}

// A record that is lost before its node's turn gets the very image that its pod has.
func TestARecordThatIsLostKeepsItsImage(t *testing.T) {
	r := registry{"cassandra:5.0.6": digest("a"), "cassandra:5.0.9": digest("b")}
	w := runsOn(t, r)
	for _, name := range three {
		w.deletePod(name)
	}
	pod := w.snapshot.Nodes[three[2]].Pod.UID
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Version, s.Paused = "5.0.9", true })
	w.snapshot.Nodes[three[2]].Record = nil
	w.settle()
	n := w.snapshot.Nodes[three[2]]
	if p := n.Record.Spec.Pod; n.Pod.UID != pod || p.Image != "cassandra:5.0.6" || p.ImageDigest != digest("a") {
		t.Errorf("another pod: %v; its record has %s@%s", n.Pod.UID != pod, p.Image, p.ImageDigest)
	}
}

// A record that is lost while its member has no disk, or no pod, gets the image that the others
// have.
func TestALostRecordGetsTheImageOfOthers(t *testing.T) {
	for name, lose := range map[string]func(*facts.Node){
		"no disk": func(n *facts.Node) { n.Record.Status.Phase, n.Agent = v1alpha1.PhaseDataLost, nil },
		"no pod":  func(n *facts.Node) { n.Pod, n.Agent = nil, nil },
	} {
		w := runsOn(t, registry{"cassandra:5.0.6": digest("a")})
		lost := w.snapshot.Nodes[three[2]]
		lost.Record.Spec.Pod.ImageDigest = ""
		lose(lost)
		w.pass()
		if got := w.snapshot.Nodes[three[2]].Record.Spec.Pod.ImageDigest; got != digest("a") {
			t.Errorf("%s: its record has the image %q, want %q", name, got, digest("a"))
		}
	}
}
