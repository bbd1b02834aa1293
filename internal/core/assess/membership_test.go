package assess

import (
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
)

// A node has started as soon as it has, or may have, a part in the ring: then it is not recreated.
func TestANodeHasStarted(t *testing.T) {
	const name, other = "orders-dc1-r1-0", "orders-dc1-r2-0"
	for what, c := range map[string]struct {
		change func(*View, *v1alpha1.CassandraNodeSpec)
		want   bool
	}{
		"without a ticket": {func(*View, *v1alpha1.CassandraNodeSpec) {}, false},
		"with a ticket":    {func(_ *View, s *v1alpha1.CassandraNodeSpec) { s.Join = &v1alpha1.JoinTicket{} }, true},
		"a member":         {func(_ *View, s *v1alpha1.CassandraNodeSpec) { s.Member = &v1alpha1.Member{} }, true},
		"a member by the ledger": {func(v *View, _ *v1alpha1.CassandraNodeSpec) {
			v.Ledger.Members = map[string]string{name: "x"}
		}, true},
		"with a ticket by the ledger": {func(v *View, _ *v1alpha1.CassandraNodeSpec) {
			v.Ledger.Step = &ledger.Step{Nodes: []string{name}}
		}, true},
		"while others have tickets": {func(v *View, _ *v1alpha1.CassandraNodeSpec) {
			v.Ledger.Step = &ledger.Step{Nodes: []string{other}}
		}, false},
		"while the ledger is lost": {func(v *View, _ *v1alpha1.CassandraNodeSpec) { v.LedgerLost = true }, true},
		"while the ledger is lost, without a claim": {func(v *View, s *v1alpha1.CassandraNodeSpec) {
			v.LedgerLost, s.Claims = true, nil
		}, false},
	} {
		record := &v1alpha1.CassandraNode{}
		record.Name = name
		record.Spec.Claims = []v1alpha1.ClaimReference{{Volume: v1alpha1.VolumeData, Name: "data-" + name,
			UID: "claim"}}
		v := NewView(&facts.Snapshot{
			Cluster: &v1alpha1.CassandraCluster{}, Ledger: &ledger.Ledger{},
			Nodes: map[string]*facts.Node{name: {Name: name, Record: record}},
		}, time.Time{})
		c.change(v, &record.Spec)
		if got := v.Of(name).Started(); got != c.want {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}

// Whoever was to form the ring, or is in it, belongs to it also while nothing of it is there.
func TestWhoBelongsToARing(t *testing.T) {
	const name = "orders-dc1-r9-0"
	for who, c := range map[string]struct {
		change func(*View)
		want   bool
	}{
		"nobody":           {func(*View) {}, false},
		"a member":         {func(v *View) { v.Ledger.Members = map[string]string{name: "id"} }, true},
		"who was left out": {func(v *View) { v.Ledger.Excluded = []string{name} }, true},
		"who has a ticket": {func(v *View) { v.Ledger.Step = &ledger.Step{Nodes: []string{name}} }, true},
		"whose ticket was withdrawn": {func(v *View) {
			v.Ledger.Step = &ledger.Step{Nodes: []string{name}, Withdrawn: []string{name}}
		}, true},
		"who has a record": {func(v *View) { v.Nodes[name] = &facts.Node{Record: &v1alpha1.CassandraNode{}} }, true},
		"who has a pod":    {func(v *View) { v.Nodes[name] = &facts.Node{} }, false},
	} {
		v := NewView(&facts.Snapshot{
			Cluster: &v1alpha1.CassandraCluster{}, Ledger: &ledger.Ledger{}, Nodes: map[string]*facts.Node{},
		}, time.Time{})
		if c.change(v); v.Belongs(name) != c.want {
			t.Errorf("%s: %v", who, !c.want)
		}
	}
}
