package cluster

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/cluster/ticket"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
)

// Members by their disks alone are a ring that serves if two of them have let clients in. One that
// has, among others, may only have set the system keyspaces.
func TestARingOfDisksServesIfTwoOfThemLetClientsIn(t *testing.T) {
	for name, c := range map[string]struct {
		closed []string
		kind   ledger.Kind
	}{
		"all":           {nil, ""},
		"not the first": {[]string{first}, ""},
		"not the last":  {[]string{third}, ""},
		"only one":      {[]string{first, third}, ledger.FormRing},
		"none":          {three, ledger.FormRing},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			w.snapshot.Ledger = nil
			for _, name := range three {
				n := w.snapshot.Nodes[name]
				n.Record.Spec.Member, n.Record.Spec.ClientTraffic = nil, v1alpha1.TrafficClosed
				n.Agent.TrafficOpened = !slices.Contains(c.closed, name)
			}
			l, missing := rebuilt(t, w)
			if len(missing) > 0 || len(l.Members) != 3 || !slices.Equal(l.Formed, []string{"dc1"}) ||
				l.TrafficAllowed != (len(c.closed) < 3) {
				t.Errorf("%s, missing %v", ledgerInWords(l), missing)
			}
			if c.kind == "" && l.Step != nil || c.kind != "" &&
				(l.Step == nil || l.Step.Kind != c.kind || l.Step.Stage != ledger.StageFormed) {
				t.Errorf("%s; want a step %q", ledgerInWords(l), c.kind)
			}
			if again := c.kind == ""; l.SystemKeyspaces != again || (len(l.Cleanup) > 0) != again {
				t.Errorf("%s", ledgerInWords(l))
			}
		})
	}
}

// One node that is still to join keeps a datacenter in its first stage, whatever is known of the
// others.
func TestHowFarALostDatacenterWasAdded(t *testing.T) {
	const one, other = "orders-dc2-r1-0", "orders-dc2-r2-0"
	unknown := func(n *facts.Node) { n.Record.Spec.Member, n.Record.Spec.Join, n.Agent.TrafficOpened = nil, nil, false }
	joins := func(n *facts.Node) {
		n.Record.Spec.Member, n.Agent.Disk = nil, v1alpha1.DiskJoining
		n.Record.Spec.Join = &v1alpha1.JoinTicket{Intent: v1alpha1.Intent{ID: "step/join/" + n.Name},
			Mode:   v1alpha1.JoinNew,
			Tokens: []string{"1"}}
	}
	for name, c := range map[string]struct {
		change map[string]func(*facts.Node)
		stage  ledger.Stage
	}{
		"all are members":            {nil, ledger.StageKeyspaces},
		"one is unknown":             {map[string]func(*facts.Node){one: unknown}, ledger.StageFormed},
		"the other is":               {map[string]func(*facts.Node){other: unknown}, ledger.StageFormed},
		"one is unknown, one joins":  {map[string]func(*facts.Node){one: unknown, other: joins}, ledger.StageTickets},
		"one joins, one is unknown":  {map[string]func(*facts.Node){one: joins, other: unknown}, ledger.StageTickets},
		"one is a member, one joins": {map[string]func(*facts.Node){other: joins}, ledger.StageTickets},
		"both join":                  {map[string]func(*facts.Node){one: joins, other: joins}, ledger.StageTickets},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			w.change(func(s *v1alpha1.CassandraClusterSpec) {
				s.Datacenters = append(s.Datacenters, added("dc2", 1, 1))
			})
			w.until(func(s *ledger.Step) bool { return s.Stage == ledger.StageKeyspaces })
			w.snapshot.Ledger = nil
			for name, change := range c.change {
				change(w.snapshot.Nodes[name])
			}
			l, _ := rebuilt(t, w)
			if l.Step == nil || l.Step.Kind != ledger.AddDatacenter || l.Step.Stage != c.stage ||
				!slices.Equal(l.Step.Wave(), []string{one, other}) ||
				l.IsFormed("dc2") == (c.stage == ledger.StageTickets) || !l.IsFormed("dc1") {
				t.Errorf("%s; want stage %s", ledgerInWords(l), c.stage)
			}
		})
	}
}

// Until an adoption has begun the disks of the earlier cluster are nobody's members, and the guards
// of the adoption are asked as if nothing had been lost.
func TestDisksThatAreStillToBeTakenOverAreNoMembers(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(n *facts.Node) // of the first node
		adopts  types.UID
		members int
	}{
		"all are still to be taken over": {func(*facts.Node) {}, "old", 0},
		"one is this cluster's":          {func(n *facts.Node) { n.Agent.Owner.ClusterUID = "cluster-uid" }, "old", 1},
		"one is of nobody":               {func(n *facts.Node) { n.Agent.Owner = nil }, "old", 1},
		"one became a member": {func(n *facts.Node) {
			n.Record.Spec.Member = &v1alpha1.Member{HostID: "h"}
		}, "old", 3},
		"none is to be taken over at all": {func(*facts.Node) {}, "", 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := forming(t, v1alpha1.DiskJoining, three...)
			w.snapshot.Ledger = nil
			for _, name := range three {
				n := w.snapshot.Nodes[name]
				n.Record.Spec.Join, n.Record.Spec.Cluster.AdoptedUID = nil, c.adopts
				n.Agent.Disk, n.Agent.HostID, n.Agent.Owner = v1alpha1.DiskMember, hostID(name),
					&v1alpha1.DiskOwner{ClusterUID: "old"}
			}
			c.change(w.snapshot.Nodes[first])
			if l, _ := rebuilt(t, w); len(l.Members) != c.members || l.IsFormed("dc1") != (c.members > 0) ||
				l.Adopted != c.adopts {
				t.Errorf("%s", ledgerInWords(l))
			}
		})
	}
}

// A node that is on its way into a ring which serves is no member of it, although a disk has to say
// for another one that it is.
func TestAJoinerIsNoMemberOfALostLedger(t *testing.T) {
	for name, c := range map[string]struct {
		served bool
		kind   ledger.Kind
		wave   []string
	}{
		"the ring serves":         {true, ledger.JoinNode, []string{newcomer}},
		"the ring is formed anew": {false, ledger.FormRing, three},
	} {
		t.Run(name, func(t *testing.T) {
			w := joining(t)
			w.snapshot.Ledger = nil
			w.snapshot.Nodes[first].Record.Spec.Member = nil
			for _, name := range three {
				if n := w.snapshot.Nodes[name]; !c.served {
					n.Record.Spec.ClientTraffic, n.Agent.TrafficOpened = v1alpha1.TrafficClosed, false
				}
			}
			l, missing := rebuilt(t, w)
			if len(l.Members) != 3 || l.Members[newcomer] != "" || l.Step == nil || l.Step.Kind != c.kind ||
				!slices.Equal(l.Step.Wave(), c.wave) || len(missing) > 0 {
				t.Errorf("%s, missing %v", ledgerInWords(l), missing)
			}
		})
	}
}

// What a ring of several nodes might hold that they no longer own is dropped once more; a single
// node owns all.
func TestWhatIsDoneOnceMoreForALostLedger(t *testing.T) {
	for nodes, again := range map[int32]bool{1: false, 2: true} {
		w := newWorld(t, datacenter("dc1", nodes))
		w.settle()
		w.snapshot.Ledger = nil
		if l, _ := rebuilt(t, w); len(l.Members) != int(nodes) || (len(l.Cleanup) > 0) != again ||
			l.SystemKeyspaces != again {
			t.Errorf("%d nodes: %s", nodes, ledgerInWords(l))
		}
	}
}

// A datacenter that is being added has its seeds while its nodes join, and stands when they have.
func TestALostLedgerOfADatacenterThatIsAdded(t *testing.T) {
	for stage, c := range map[ledger.Stage]struct {
		found ledger.Stage
		joins bool
	}{ledger.StageTickets: {ledger.StageTickets, true}, ledger.StageRebuild: {ledger.StageKeyspaces, false}} {
		w := formed(t)
		w.change(w.withShop(added("dc2", 1, 1)))
		w.until(func(s *ledger.Step) bool { return s.Stage == stage })
		w.snapshot.Ledger = nil
		l, _ := rebuilt(t, w)
		if l.Step == nil || l.Step.Stage != c.found || l.IsFormed("dc2") == c.joins ||
			(len(ticket.Of(l.Step).Seeds) > 0) != c.joins || len(l.Step.Nodes) != 2 {
			t.Errorf("%s: %s with seeds %v", stage, ledgerInWords(l), ticket.Of(l.Step).Seeds)
		}
	}
}

// A member whose rack was out of the spec while the ledger was rebuilt has its record later.
func TestAMemberThatTheLedgerLacks(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world, n *facts.Node)
		noted  bool
	}{
		"a member":                  {func(*world, *facts.Node) {}, true},
		"one that was replaced":     {func(w *world, n *facts.Node) { w.snapshot.Ledger.Replaced = []string{n.Agent.HostID} }, false},
		"one that is not NORMAL":    {func(_ *world, n *facts.Node) { n.Agent.Ring.Mode = facts.ModeJoining }, false},
		"one with another's disk":   {func(_ *world, n *facts.Node) { n.Agent.Disk = v1alpha1.DiskLeft }, false},
		"one that nobody sees":      {func(_ *world, n *facts.Node) { n.Agent.HostID = "another" }, false},
		"one that has left its pod": {func(_ *world, n *facts.Node) { n.Agent = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			n := w.snapshot.Nodes[third]
			id := n.Agent.HostID
			delete(w.snapshot.Ledger.Members, third)
			n.Record.Spec.Member = nil
			c.change(w, n)
			made := next(w)
			noted := ""
			for _, write := range made.Writes {
				if write.Ledger != nil {
					noted = write.Ledger.Members[third]
				}
			}
			if (noted == id) != c.noted || noted != "" && !c.noted {
				t.Errorf("noted %q, want %q: %t\n%s", noted, id, c.noted, made)
			}
		})
	}
}
