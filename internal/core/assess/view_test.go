package assess

import (
	"testing"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/ledger"
)

func TestWhenARingCanChange(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*scene, *View) *View
		want   bool
	}{
		"it is formed":        {func(_ *scene, v *View) *View { return v }, true},
		"it is being formed":  {func(s *scene, v *View) *View { s.Ledger.Formed = nil; return v }, false},
		"its spec is refused": {func(_ *scene, v *View) *View { return v.Rejecting() }, false},
		"a step is open":      {func(s *scene, v *View) *View { s.Ledger.Step = &ledger.Step{}; return v }, false},
	} {
		s := newScene(t)
		s.formed()
		if got := c.change(s, s.view()).CanChange(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A node with a ticket is abandoned when the spec, which is accepted, does not describe it, or its
// ticket was withdrawn; not once it has joined.
func TestWhoIsAbandoned(t *testing.T) {
	same := func(v *View) *View { return v }
	for name, c := range map[string]struct {
		change           func(*scene)
		view             func(*View) *View
		wanted, unwanted bool
	}{
		"it is on its way": {func(*scene) {}, same, false, true},
		"its ticket is withdrawn": {func(s *scene) { s.n.Record.Spec.Join.Withdraw = &v1alpha1.Withdrawal{} }, same,
			true, true},
		"its agent has acknowledged that, as a record that was lost had said": {func(s *scene) {
			s.n.Record.Status.Join = &v1alpha1.IntentStatus{ID: s.n.Record.Spec.Join.ID, WithdrawnAt: &when}
		}, same, true, true},
		"its agent has acknowledged that of a former one": {func(s *scene) {
			s.n.Record.Status.Join = &v1alpha1.IntentStatus{ID: "another", WithdrawnAt: &when}
		}, same, false, true},
		"the ticket of an earlier step was withdrawn": {func(s *scene) {
			s.n.Record.Spec.Join.ID, s.n.Record.Spec.Join.Withdraw = "earlier/join/"+second, &v1alpha1.Withdrawal{}
		}, same, false, true},
		"it has no ticket yet":  {func(s *scene) { s.n.Record.Spec.Join = nil }, same, false, true},
		"its record is away":    {func(s *scene) { s.n.Record = nil }, same, false, true},
		"its record is deleted": {func(s *scene) { s.n.Record.DeletionTimestamp = &when }, same, false, false},
		"it has joined":         {func(s *scene) { s.n.Record.Status.Disk = v1alpha1.DiskMember }, same, false, false},
		"the spec is refused":   {func(*scene) {}, (*View).Rejecting, false, false},
	} {
		for _, describes := range []bool{true, false} {
			s := newScene(t)
			c.change(s)
			want := c.wanted
			if !describes {
				s.Cluster.Spec.Datacenters[0].Racks = s.Cluster.Spec.Datacenters[0].Racks[:1]
				want = c.unwanted
			}
			if got := c.view(s.view()).Abandoned(second); got != want {
				t.Errorf("%s, the spec describes it %v: abandoned %v", name, describes, got)
			}
		}
	}
}
