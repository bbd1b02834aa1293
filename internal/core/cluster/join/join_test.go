package join

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/ticket"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/render"
)

const (
	first, second, third = "orders-dc1-r1-0", "orders-dc1-r2-0", "orders-dc1-r3-0"

	pending = "orders-dc1-r1-1"
)

// growing is a ring of one datacenter, whose racks are to have so many nodes, with some members.
func growing(sizes []int32, members ...string) *assess.View {
	size := resource.MustParse("10Gi")
	dc := v1alpha1.Datacenter{Name: "dc1", NumTokens: 1, PlannedReplicationFactor: 3}
	for i := range sizes {
		dc.Racks = append(dc.Racks, v1alpha1.Rack{Name: []string{"r1", "r2", "r3"}[i], Nodes: &sizes[i]})
	}
	s := &facts.Snapshot{
		Cluster: &v1alpha1.CassandraCluster{}, Nodes: map[string]*facts.Node{},
		Ledger: &ledger.Ledger{Ring: ledger.Ring{Formed: []string{"dc1"}, Members: map[string]string{}}},
	}
	s.Cluster.Name, s.Cluster.Spec.Version, s.Cluster.Spec.Datacenters = "orders", "5.0.6", []v1alpha1.Datacenter{dc}
	claims := &v1alpha1.StorageClaims{Data: &v1alpha1.VolumeClaim{Size: &size}}
	s.Cluster.Spec.Node = &v1alpha1.NodeTemplate{
		NodeSettings: v1alpha1.NodeSettings{Storage: &v1alpha1.Storage{Claims: claims}},
	}
	for _, name := range members {
		s.Ledger.Members[name] = "host-" + name
	}
	return assess.NewView(s, time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
}

// The next node to join is of the rack with the fewest members.
func TestWhoJoinsNext(t *testing.T) {
	v := growing([]int32{4, 4, 4}, "orders-dc1-r1-0", "orders-dc1-r1-1", "orders-dc1-r2-0", "orders-dc1-r3-0",
		"orders-dc1-r3-1", "orders-dc1-r3-2")
	var got []string
	for _, n := range pendingNodes(v) {
		got = append(got, strings.TrimPrefix(n.Name, "orders-dc1-"))
	}
	if want := []string{"r2-1", "r2-2", "r2-3", "r1-2", "r1-3", "r3-3"}; !slices.Equal(got, want) {
		t.Errorf("in the order %v, want %v", got, want)
	}
	v.Ledger.Formed = nil
	if got := pendingNodes(v); len(got) > 0 {
		t.Errorf("of a datacenter that is not formed: %v", got)
	}
}

// Only a ticket that lets its node join a ring that serves brings back the step of a join.
func TestWhichTicketsHaveAJoinGoOn(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*facts.Node)
		want   bool
	}{
		"its own":               {func(*facts.Node) {}, true},
		"none":                  {func(n *facts.Node) { n.Record.Spec.Join = nil }, false},
		"none, nor a record":    {func(n *facts.Node) { n.Record = nil }, false},
		"one to form a ring":    {func(n *facts.Node) { n.Record.Spec.Join.Mode = v1alpha1.JoinNew }, false},
		"one that is withdrawn": {func(n *facts.Node) { n.Record.Spec.Join.Withdraw = &v1alpha1.Withdrawal{} }, false},
	} {
		v := growing([]int32{2}, first)
		tokens := []string{"1", "2"}
		n := &facts.Node{Name: pending, Record: &v1alpha1.CassandraNode{Spec: v1alpha1.CassandraNodeSpec{Join: &v1alpha1.JoinTicket{
			Intent: v1alpha1.Intent{ID: "step/join/" + pending}, Mode: v1alpha1.JoinBootstrap, Tokens: tokens,
		}}}}
		v.Nodes[pending] = n
		c.change(n)
		s := lostStep(v, []render.Wanted{{Name: second}, {Name: pending}})
		if (s != nil) != c.want || c.want && (s.ID != "step" || s.Kind != ledger.JoinNode ||
			!slices.Equal(ticket.Of(s).Tokens[pending], tokens)) {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// A data volume is as large as it came out, else as it is described.
func TestHowLargeADataVolumeIs(t *testing.T) {
	made := func(capacity string) *facts.Node {
		c := &corev1.PersistentVolumeClaim{}
		if capacity != "" {
			c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(capacity)}
		}
		return &facts.Node{Claims: map[string]*facts.Claim{v1alpha1.VolumeData: {Claim: c}}}
	}
	for name, c := range map[string]struct {
		node *facts.Node
		want string
	}{
		"there is no node":        {nil, "10Gi"},
		"it has no claim":         {&facts.Node{}, "10Gi"},
		"its claim is not seen":   {&facts.Node{Claims: map[string]*facts.Claim{v1alpha1.VolumeData: {}}}, "10Gi"},
		"its claim has no volume": {made(""), "10Gi"},
		"its volume is larger":    {made("12Gi"), "12Gi"},
	} {
		v := growing([]int32{1})
		v.Nodes[first] = c.node
		w := v.Wanted[0]
		if got := dataVolume(v, w); got == nil || got.String() != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
		w.Pod.Storage.Claims = nil
		if got := dataVolume(v, w); c.want == "10Gi" && got != nil {
			t.Errorf("%s, and is not described: %v", name, got)
		}
	}
}

// Each way in which keyspaces are replicated counts for who holds less when a node has joined.
func TestWhoHoldsLessOnceANodeHasJoined(t *testing.T) {
	v := growing([]int32{1, 1, 1}, first, second, third)
	view := &facts.Ring{}
	for i, name := range []string{first, second, third} {
		view.Endpoints = append(view.Endpoints, facts.Endpoint{
			Address: "address-" + name, HostID: "host-" + name, Datacenter: "dc1", Rack: []string{"r1", "r2", "r3"}[i],
			Status: facts.StatusNormal, Live: true, Tokens: []int64{int64(i) << 61},
		})
	}
	for name, c := range map[string]struct {
		keyspaces map[string]string
		want      []string
	}{
		"one of them has replicas here": {map[string]string{
			"a": "NetworkTopologyStrategy {dc9=1}", "b": "NetworkTopologyStrategy {dc9=1}",
			"c": "NetworkTopologyStrategy {dc1=1}",
		}, []string{first}},
		"none has": {map[string]string{"a": "NetworkTopologyStrategy {dc9=1}"}, nil},
	} {
		view.Keyspaces = c.keyspaces
		if got := shrunk(v, view, "host-"+third); !slices.Equal(got, c.want) {
			t.Errorf("%s: less hold %v, want %v", name, got, c.want)
		}
	}
}
