package trial

import (
	"context"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/simulate/world"
)

// A roll-out is not over while a node is to go down for it. One of a datacenter that is stopped
// alone is down for that.
func TestWhenARollOutIsOver(t *testing.T) {
	s, err := Find("create-1")
	if err != nil {
		t.Fatal(err)
	}
	r := &run{Trial: Trial{Scenario: s}, result: Result{Changes: map[string][]time.Time{}}}
	r.w, err = world.New(world.Options{Kinds: kindsOf(t), Zones: s.Zones, HostsPerZone: s.HostsPerZone})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.w.End)
	r.checker = newChecker(r)
	r.w.StartOperator(r.w.Installed)
	r.acts()
	over := func() bool { return r.checker.overBefore(&ledger.Step{Kind: ledger.RollOut, Stage: ledger.StageWaves}) }
	if !over() {
		t.Error("no node is asked to go down, and it is not over")
	}
	n := r.w.Server.Objects("CassandraNode")[0].(*v1alpha1.CassandraNode).DeepCopy()
	n.Spec.State = v1alpha1.StateStopped
	if err := r.w.User().Update(context.Background(), n); err != nil {
		t.Fatal(err)
	}
	if over() {
		t.Error("a node is to stop, and it is over")
	}
	r.checker.lastLedger.StoppedDatacenters = []ledger.StoppedDatacenter{{Name: n.Spec.Datacenter}}
	if !over() {
		t.Error("it is not over while a datacenter is stopped")
	}
}
