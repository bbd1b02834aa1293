package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/plan"
)

// ofClass is a ring that has formed on volumes of a class, which lets them grow or does not.
func ofClass(t *testing.T, expandable bool) *world {
	t.Helper()
	w := formed(t)
	class := "fast"
	for _, claim := range w.claims() {
		claim.Spec.StorageClassName = &class
		claim.Status.Capacity = claim.Spec.Resources.Requests.DeepCopy()
	}
	w.snapshot.Expandable = map[string]bool{class: expandable}
	return w
}

func sized(size string) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) { s.Node.Storage.Claims.Data.Size = quantity(size) }
}

// sizes are what the claims ask for.
func (w *world) sizes() string {
	var out []string
	for _, n := range w.snapshot.Records() {
		size := n.Claims["data"].Claim.Spec.Resources.Requests[corev1.ResourceStorage]
		out = append(out, size.String())
	}
	return strings.Join(out, " ")
}

// The claims of a ring that serves grow at once, and nothing restarts.
func TestVolumesGrow(t *testing.T) {
	w := ofClass(t, true)
	pods := w.pods()
	w.change(sized("20Gi"))
	ahead := Ahead(w.snapshot, Next(w.snapshot, w.now), w.now)
	if ahead == nil || len(ahead.Changes) != 1 || ahead.Changes[0].Takes != plan.Live ||
		len(ahead.Changes[0].Nodes) != 3 || len(ahead.Waves) > 0 {
		t.Errorf("a plan foresees %+v", ahead)
	}
	made := w.settle()
	if w.sizes() != "20Gi 20Gi 20Gi" || made.Stalled != nil {
		t.Errorf("the claims ask for %s:\n%s", w.sizes(), made)
	}
	if len(made.Notices) != 1 || made.Notices[0].Reason != v1alpha1.NoticeVolumeGrows ||
		!strings.Contains(made.Notices[0].Message, "has 10Gi of 20Gi") {
		t.Errorf("it does not say that the volumes are to grow: %+v", made.Notices)
	}
	for _, claim := range w.claims() {
		claim.Status.Capacity[corev1.ResourceStorage] = resource.MustParse("20Gi")
	}
	if made := w.settle(); len(made.Notices) > 0 || len(made.Writes) > 0 {
		t.Errorf("want nothing:\n%s", made)
	}
	for name, uid := range w.pods() {
		if pods[name] != uid || w.snapshot.Nodes[name].Record.Status.Restart != nil {
			t.Errorf("node %s has restarted", name)
		}
	}
}

// What else changes is rolled out after that, and a spec that is refused for something else grows
// nothing.
func TestVolumesGrowBesideOtherChanges(t *testing.T) {
	w := ofClass(t, true)
	w.change(sized("20Gi"))
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].NumTokens = 8 })
	wantStalled(t, w.settle(), v1alpha1.ReasonUnsupportedChange, "datacenters[].numTokens: 4 → 8")
	if w.sizes() != "10Gi 10Gi 10Gi" {
		t.Errorf("a spec that is refused has the claims ask for %s", w.sizes())
	}
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].NumTokens = 4 })
	w.change(setting("concurrent_reads", "16"))
	w.rolledOut()
	if w.sizes() != "20Gi 20Gi 20Gi" {
		t.Errorf("the claims ask for %s", w.sizes())
	}
	for _, n := range w.snapshot.Records() {
		if n.Record.Status.Restart == nil {
			t.Errorf("node %s has not restarted", n.Name)
		}
	}
}

// A larger size can be taken back as long as no claim asks for it.
func TestAGrowthIsTakenBack(t *testing.T) {
	w := ofClass(t, true)
	w.change(sized("20Gi"))
	for _, write := range Next(w.snapshot, w.now).Writes {
		if write.Verb == plan.Apply {
			w.do(write) // and the operator ends before it has written a claim
		}
	}
	w.change(sized("10Gi"))
	made := w.settle()
	if made.Stalled != nil || w.sizes() != "10Gi 10Gi 10Gi" {
		t.Errorf("the claims ask for %s:\n%s", w.sizes(), made)
	}
	for _, n := range w.snapshot.Records() {
		if got := n.Record.Spec.Pod.Storage.Claims.Data.Size.String(); got != "10Gi" {
			t.Errorf("the record of %s asks for %s", n.Name, got)
		}
	}
}

func TestVolumesThatCannotGrow(t *testing.T) {
	for name, c := range map[string]struct {
		expandable bool
		size, want string
	}{
		"their class does not let them": {false, "20Gi",
			`storage class "fast" of claim data-orders-dc1-r1-0 does not let volumes grow (allowVolumeExpansion)`},
		"smaller": {true, "5Gi", "claim data-orders-dc1-r1-0 has 10Gi, and volumes do not shrink"},
	} {
		t.Run(name, func(t *testing.T) {
			w := ofClass(t, c.expandable)
			w.change(sized(c.size))
			made := w.settle()
			wantStalled(t, made, v1alpha1.ReasonUnsupportedChange, "node.storage.claims.data.size")
			wantStalled(t, made, v1alpha1.ReasonUnsupportedChange, c.want)
			if w.sizes() != "10Gi 10Gi 10Gi" || len(made.Writes) > 0 {
				t.Errorf("the claims ask for %s:\n%s", w.sizes(), made)
			}
		})
	}
}
