package cluster

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

func uidOrNone(name string) types.UID {
	if name == "none" {
		return ""
	}
	return types.UID(name)
}

// An empty ledger is only made for a cluster of which nothing is there: it would allow another formation.
func TestALedgerIsLostIfAnythingOfTheClusterIsThere(t *testing.T) {
	claim := func(of string) *facts.Node {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelClusterUID: of}}}
		return &facts.Node{Claims: map[string]*facts.Claim{"commitlog": {}, "data": {Claim: c}}}
	}
	for name, c := range map[string]struct {
		node *facts.Node
		lost bool
	}{
		"nothing":                    {nil, false},
		"a record":                   {&facts.Node{Record: &v1alpha1.CassandraNode{}}, true},
		"a pod":                      {&facts.Node{Pod: &corev1.Pod{}}, true},
		"a claim of it":              {claim("cluster-uid"), true},
		"a claim of another cluster": {claim("other"), false},
		"a volume without its claim": {&facts.Node{Claims: map[string]*facts.Claim{"data": {}}}, false},
	} {
		w := newWorld(t)
		if c.node != nil {
			w.snapshot.Nodes["x"] = c.node
		}
		if got := passOver(w).anyNodeObject(); got != c.lost {
			t.Errorf("%s: lost %v, want %v", name, got, c.lost)
		}
	}
}

func TestWhatALostLedgerIsRebuiltFrom(t *testing.T) {
	node := func(change func(*facts.Node)) func(*world) {
		return func(w *world) { change(w.snapshot.Nodes[second]) }
	}
	givenBack := func(n *facts.Node) {
		when := metav1.Now()
		n.Record.Status.Join.WithdrawnAt = &when
	}
	for name, c := range map[string]struct {
		change  func(*world)
		formed  bool
		members map[string]string
		traffic bool
		stage   ledger.Stage
		// tickets and how many tokens each has.
		tickets map[string]int
		missing int
	}{
		"tickets that are out":    {func(*world) {}, false, nil, false, ledger.StageTickets, map[string]int{first: 4, second: 4, third: 4}, 0},
		"one that was given back": {node(givenBack), false, nil, false, ledger.StageTickets, map[string]int{first: 4, third: 4}, 0},
		"one that was given back too late": {node(func(n *facts.Node) { givenBack(n); n.Agent.Disk = v1alpha1.DiskMember }), false, nil, false,
			ledger.StageTickets, map[string]int{first: 4, second: 4, third: 4}, 0},
		"one that another withdrawal was of": {node(func(n *facts.Node) { givenBack(n); n.Record.Status.Join.ID = "x" }), false, nil, false,
			ledger.StageTickets, map[string]int{first: 4, second: 4, third: 4}, 0},
		"one that never got a ticket": {node(func(n *facts.Node) { n.Record.Spec.Join, n.Agent.Disk = nil, v1alpha1.DiskEmpty }), false, nil, false,
			ledger.StageTickets, map[string]int{first: 4, third: 4}, 0},
		"one that never had a disk": {node(func(n *facts.Node) {
			n.Agent, n.Record.Spec.Join, n.Record.Status.HostID = nil, nil, ""
			for _, c := range n.Claims {
				c.Claim.Status.Phase = corev1.ClaimPending
			}
		}), false, nil, false, ledger.StageTickets, map[string]int{first: 4, third: 4}, 0},
		"one that is silent": {node(func(n *facts.Node) { n.Agent = nil }), false, nil, false, ledger.StageTickets, map[string]int{first: 4, third: 4}, 1},
		"a disk that has joined": {node(func(n *facts.Node) { n.Record.Spec.Join, n.Agent.Disk, n.Agent.HostID = nil, v1alpha1.DiskMember, "h" }), true,
			map[string]string{first: "", second: "h", third: ""}, false, ledger.StageFormed, map[string]int{first: 4, second: 0, third: 4}, 0},
		"a node that let clients in": {node(func(n *facts.Node) {
			n.Record.Spec.Join, n.Agent.Disk, n.Agent.HostID, n.Agent.TrafficOpened = nil, v1alpha1.DiskEmpty, "h", true
		}), true,
			map[string]string{first: "", second: "h", third: ""}, true, ledger.StageFormed, map[string]int{first: 4, second: 0, third: 4}, 0},
		"a member by its record, whatever its agent says": {node(func(n *facts.Node) { n.Record.Spec.Member, n.Agent.HostID = &v1alpha1.Member{HostID: "r"}, "h" }), true,
			map[string]string{first: "a", second: "r", third: ""}, false, ledger.StageFormed, map[string]int{first: 4, second: 0, third: 4}, 0},
		"a member that is open": {node(func(n *facts.Node) {
			n.Record.Spec.Member, n.Record.Spec.ClientTraffic = &v1alpha1.Member{HostID: "r"}, v1alpha1.TrafficOpen
		}), true,
			map[string]string{first: "a", second: "r", third: ""}, true, ledger.StageFormed, map[string]int{first: 4, second: 0, third: 4}, 0},
		"clients let in before, by another": {func(w *world) {
			n := w.snapshot.Nodes[first]
			n.Record.Spec.Join, n.Agent.Disk, n.Agent.HostID, n.Agent.TrafficOpened = nil, v1alpha1.DiskMember, "a", true
			n = w.snapshot.Nodes[second]
			n.Record.Spec.Join, n.Agent.Disk, n.Agent.HostID = nil, v1alpha1.DiskMember, "h"
		}, true, map[string]string{first: "a", second: "h", third: ""}, true, ledger.StageFormed, map[string]int{first: 0, second: 0, third: 4}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := forming(t, v1alpha1.DiskJoining, three...)
			w.snapshot.Ledger = nil
			if c.members != nil && c.members[first] == "a" {
				w.snapshot.Nodes[first].Agent.HostID = "a"
			}
			c.change(w)
			l, missing := passOver(w).rebuildLedger()
			if l.IsFormed("dc1") != c.formed || l.TrafficAllowed != c.traffic || len(missing) != c.missing || l.Step == nil || l.Step.Stage != c.stage || len(l.Step.Tickets) != len(c.tickets) {
				t.Fatalf("%s, missing %v", ledgerInWords(l), missing)
			}
			for node, tokens := range c.tickets {
				if ticket, ok := l.Step.Tickets[node]; !ok || len(ticket.Tokens) != tokens {
					t.Errorf("ticket of %s: %v, want %d tokens", node, ticket, tokens)
				}
			}
			if len(l.Members) != len(c.members) {
				t.Errorf("members %v, want %v", l.Members, c.members)
			}
			for node, id := range c.members {
				if l.Members[node] != id {
					t.Errorf("members %v, want %v", l.Members, c.members)
				}
			}
		})
	}
}

// With the records gone too, the disks alone know who is a member: each gets a record, through which its pod can say so, before anything else is decided.
func TestALostLedgerAndLostRecordsComeBackFromTheDisks(t *testing.T) {
	for name, refused := range map[string]bool{"the spec is good": false, "the spec is refused": true} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			members := w.snapshot.Ledger.Members
			w.snapshot.Ledger = nil
			for _, n := range w.snapshot.Nodes {
				n.Record, n.Pod, n.Agent = nil, nil, nil
			}
			w.held = map[string]v1alpha1.DiskState{first: v1alpha1.DiskMember, second: v1alpha1.DiskMember, third: v1alpha1.DiskMember}
			if refused {
				w.change(setting("no_such_setting", "1"))
			}
			made := w.settle()
			if refused {
				if w.snapshot.Ledger != nil || len(w.snapshot.Records()) > 0 || len(made.Blocked) != 1 || len(made.Blocked[0].Nodes) != 3 {
					t.Errorf("something was made by a spec that is refused:\n%s", made)
				}
				return
			}
			w.wantOpen()
			if !maps.Equal(w.snapshot.Ledger.Members, members) {
				t.Errorf("members %v, were %v", w.snapshot.Ledger.Members, members)
			}
		})
	}
}

// What serves clients goes on while everything that was known of it is found out anew.
func TestNodesServeWhileLedgerAndRecordsComeBack(t *testing.T) {
	for name, c := range map[string]struct {
		kept []string
		// closed are nodes that no client was let to yet: with one that is open and no record that says so, the ring is formed once more.
		closed []string
		// silent says that no agent answers while the records learn who is a member.
		silent bool
	}{
		"all records are lost":                          {nil, nil, false},
		"all but one":                                   {[]string{second}, nil, false},
		"all, and a node is still closed":               {nil, []string{third}, false},
		"all, and one node is open":                     {nil, []string{second, third}, false},
		"all, and one node is open, and agents silent":  {nil, []string{second, third}, true},
		"some, and a node is closed, and agents silent": {[]string{first}, []string{third}, true},
		"some, and the others are closed":               {[]string{first}, []string{second, third}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			w.snapshot.Ledger = nil
			for _, name := range three {
				n := w.snapshot.Nodes[name]
				if slices.Contains(c.closed, name) {
					n.Agent.Traffic, n.Agent.TrafficOpened = v1alpha1.TrafficClosed, false
				}
				if !slices.Contains(c.kept, name) {
					n.Record = nil
				}
			}
			for range 50 {
				learning := w.snapshot.Ledger != nil && w.snapshot.Ledger.Step != nil && w.snapshot.Ledger.Step.Stage == ledger.StageFormed
				for _, name := range three {
					w.absent[name] = c.silent && learning
					if w.absent[name] {
						w.snapshot.Nodes[name].Agent = nil
					}
				}
				made := w.pass()
				for _, write := range made.Writes {
					n, ok := write.Object.(*v1alpha1.CassandraNode)
					if ok && n.Spec.Member != nil && n.Spec.ClientTraffic == v1alpha1.TrafficClosed && !slices.Contains(c.closed, n.Name) {
						t.Fatalf("node %s is closed to clients:\n%s", n.Name, made)
					}
				}
				if l := w.snapshot.Ledger; l != nil && l.Step == nil && made.Idle() {
					break
				}
			}
			w.wantOpen()
		})
	}
}

// Members by their disks alone are a ring that serves if two of them have let clients in. One that has, among others, may only have set the system keyspaces.
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
			l, missing := passOver(w).rebuildLedger()
			if len(missing) > 0 || len(l.Members) != 3 || !slices.Equal(l.Formed, []string{"dc1"}) || l.TrafficAllowed != (len(c.closed) < 3) {
				t.Errorf("%s, missing %v", ledgerInWords(l), missing)
			}
			if c.kind == "" && l.Step != nil || c.kind != "" && (l.Step == nil || l.Step.Kind != c.kind || l.Step.Stage != ledger.StageFormed) {
				t.Errorf("%s; want a step %q", ledgerInWords(l), c.kind)
			}
			if again := c.kind == ""; l.SystemKeyspaces != again || (len(l.Cleanup) > 0) != again {
				t.Errorf("%s", ledgerInWords(l))
			}
		})
	}
}

// How many members that no record knows there are, and how many of them have let clients in, says whether their datacenter serves.
func TestWhichDatacentersServeByTheirDisks(t *testing.T) {
	w := formed(t)
	for _, name := range three {
		w.snapshot.Nodes[name].Record.Spec.ClientTraffic = v1alpha1.TrafficClosed
	}
	for members, serves := range map[int][]bool{1: {false, true}, 2: {false, false, true}, 3: {false, false, true, true}} {
		for opened, want := range serves {
			agents := make([]*facts.Agent, members)
			for i := range agents {
				agents[i] = &facts.Agent{TrafficOpened: i >= members-opened}
			}
			if got := passOver(w).openDatacenters(map[string][]*facts.Agent{"dc1": agents}); got["dc1"] != want {
				t.Errorf("%d of %d have let clients in: serves %v, want %v", opened, members, got["dc1"], want)
			}
		}
	}
	w.snapshot.Nodes[third].Record.Spec.ClientTraffic = v1alpha1.TrafficOpen
	if got := passOver(w).openDatacenters(map[string][]*facts.Agent{"dc1": {{}, {}}}); !got["dc1"] {
		t.Error("it does not serve, though a record lets clients in")
	}
}

// One node that is still to join keeps a datacenter in its first stage, whatever is known of the others.
func TestHowFarALostDatacenterWasAdded(t *testing.T) {
	const one, other = "orders-dc2-r1-0", "orders-dc2-r2-0"
	unknown := func(n *facts.Node) { n.Record.Spec.Member, n.Record.Spec.Join, n.Agent.TrafficOpened = nil, nil, false }
	joins := func(n *facts.Node) {
		n.Record.Spec.Member, n.Agent.Disk = nil, v1alpha1.DiskJoining
		n.Record.Spec.Join = &v1alpha1.JoinTicket{Intent: v1alpha1.Intent{ID: "step/join/" + n.Name}, Mode: v1alpha1.JoinNew, Tokens: []string{"1"}}
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
			w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters = append(s.Datacenters, added("dc2", 1, 1)) })
			w.until(func(s *ledger.Step) bool { return s.Stage == ledger.StageKeyspaces })
			w.snapshot.Ledger = nil
			for name, change := range c.change {
				change(w.snapshot.Nodes[name])
			}
			l, _ := passOver(w).rebuildLedger()
			if l.Step == nil || l.Step.Kind != ledger.AddDatacenter || l.Step.Stage != c.stage || !slices.Equal(l.Step.Wave(), []string{one, other}) ||
				l.IsFormed("dc2") == (c.stage == ledger.StageTickets) || !l.IsFormed("dc1") {
				t.Errorf("%s; want stage %s", ledgerInWords(l), c.stage)
			}
		})
	}
}

// Until an adoption has begun the disks of the earlier cluster are nobody's members, and the guards of the adoption are asked as if nothing had been lost.
func TestDisksThatAreStillToBeTakenOverAreNoMembers(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(n *facts.Node) // of the first node
		adopts  types.UID
		members int
	}{
		"all are still to be taken over":  {func(*facts.Node) {}, "old", 0},
		"one is this cluster's":           {func(n *facts.Node) { n.Agent.Owner.ClusterUID = "cluster-uid" }, "old", 1},
		"one is of nobody":                {func(n *facts.Node) { n.Agent.Owner = nil }, "old", 1},
		"one became a member":             {func(n *facts.Node) { n.Record.Spec.Member = &v1alpha1.Member{HostID: "h"} }, "old", 3},
		"none is to be taken over at all": {func(*facts.Node) {}, "", 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := forming(t, v1alpha1.DiskJoining, three...)
			w.snapshot.Ledger = nil
			for _, name := range three {
				n := w.snapshot.Nodes[name]
				n.Record.Spec.Join, n.Record.Spec.Cluster.AdoptedUID = nil, c.adopts
				n.Agent.Disk, n.Agent.HostID, n.Agent.Owner = v1alpha1.DiskMember, hostID(name), &v1alpha1.DiskOwner{ClusterUID: "old"}
			}
			c.change(w.snapshot.Nodes[first])
			if l, _ := passOver(w).rebuildLedger(); len(l.Members) != c.members || l.IsFormed("dc1") != (c.members > 0) || l.Adopted != c.adopts {
				t.Errorf("%s", ledgerInWords(l))
			}
		})
	}
}

// A pass writes the ledger once, and looks at everything live before it if any of the reasons asks for that.
func TestChangesOfTheLedgerAreOneWrite(t *testing.T) {
	for _, live := range [][2]bool{{true, false}, {false, true}, {false, false}} {
		p := passOver(inStage(t, ledger.StageOpen))
		p.write(plan.Write{Verb: plan.Event})
		p.putLedger(live[0], "one", func(l *ledger.Ledger) { l.Steps++ })
		p.putLedger(live[1], "two", func(l *ledger.Ledger) { l.Steps++ })
		if len(p.plan.Writes) != 2 {
			t.Fatalf("writes %v", p.plan.Writes)
		}
		if w := p.plan.Writes[1]; w.Verb != plan.PutLedger || w.Live != (live[0] || live[1]) || w.Why != "one; two" || w.Ledger.Steps != 3 || p.Ledger.Steps != 3 {
			t.Errorf("write %+v with %d steps", w, w.Ledger.Steps)
		}
	}
}

// A claim that never got a volume holds nothing, whatever is lost: no JVM was ever started on it.
func TestALostLedgerDoesNotWaitForDisksThatNeverWere(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*facts.Node)
		rebuilt bool
	}{
		"no volume":                 {func(*facts.Node) {}, true},
		"a volume":                  {func(n *facts.Node) { n.Claims[v1alpha1.VolumeData].Claim.Status.Phase = corev1.ClaimBound }, false},
		"a volume is chosen":        {func(n *facts.Node) { n.Claims[v1alpha1.VolumeData].Claim.Spec.VolumeName = "v" }, false},
		"it had one":                {func(n *facts.Node) { n.Claims[v1alpha1.VolumeData].Claim.Status.Phase = corev1.ClaimLost }, false},
		"another claim than it had": {func(n *facts.Node) { n.Claims[v1alpha1.VolumeData].Claim.UID = "other" }, false},
		"none, where there was one": {func(n *facts.Node) { delete(n.Claims, v1alpha1.VolumeData) }, false},
		"it has a ticket":           {func(n *facts.Node) { n.Record.Spec.Join = &v1alpha1.JoinTicket{Intent: v1alpha1.Intent{ID: "s/n"}} }, false},
		"it said once who it is":    {func(n *facts.Node) { n.Record.Status.HostID = "x" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := preparing(t)
			n := w.snapshot.Nodes[second]
			n.Agent, n.Unreachable = nil, "no answer"
			n.Claims[v1alpha1.VolumeData].Claim.Status.Phase = corev1.ClaimPending
			c.change(n)
			w.snapshot.Ledger = nil
			made := next(w)
			rebuilt := slices.ContainsFunc(made.Writes, func(w plan.Write) bool { return w.Verb == plan.PutLedger && w.Live })
			if rebuilt != c.rebuilt {
				t.Errorf("rebuilt %v, want %v:\n%s", rebuilt, c.rebuilt, made)
			}
		})
	}
}

// Whoever writes a spec under which no pod starts can correct it, although the ledger is lost with which the corrections are made otherwise.
func TestASpecIsCorrectedWhileTheLedgerIsLost(t *testing.T) {
	w := preparing(t)
	n := w.snapshot.Nodes[second]
	n.Agent, n.Unreachable = nil, "no answer"
	n.Pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available: 3 Insufficient memory.",
	}}}
	w.snapshot.Ledger = nil
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		s.Node.Placement = &v1alpha1.Placement{NodeSelector: map[string]string{"disk": "fast"}}
	})
	wantWrites(t, next(w), second, "Apply CassandraNode")
}

// Only what is certainly this cluster's brings a record back.
func TestWhichNodesGetARecordBack(t *testing.T) {
	claim := func(of string, phase corev1.PersistentVolumeClaimPhase) *facts.Node {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelClusterUID: of}}}
		c.Status.Phase = phase
		return &facts.Node{Claims: map[string]*facts.Claim{"commitlog": {}, "data": {Claim: c}}}
	}
	for name, c := range map[string]struct {
		node *facts.Node
		want bool
	}{
		"nothing is there":                {nil, false},
		"nothing but its name":            {&facts.Node{}, false},
		"a pod":                           {&facts.Node{Pod: &corev1.Pod{}}, true},
		"a volume":                        {claim("cluster-uid", corev1.ClaimBound), true},
		"a volume of another cluster":     {claim("other", corev1.ClaimBound), false},
		"a claim that never had a volume": {claim("cluster-uid", corev1.ClaimPending), false},
	} {
		w := newWorld(t, datacenter("dc1", 1, 1))
		w.snapshot.Nodes[first] = &facts.Node{Record: &v1alpha1.CassandraNode{}, Pod: &corev1.Pod{}}
		if c.node != nil {
			w.snapshot.Nodes[second] = c.node
		}
		p := passOver(w)
		p.wanted = wantedOf(w)
		got := p.unrecorded()
		if slices.ContainsFunc(got, func(w render.Wanted) bool { return w.Name == second }) != c.want || len(got) > 1 {
			t.Errorf("%s: %d get one", name, len(got))
		}
	}
}

// A node that is on its way into a ring which serves is no member of it, although a disk has to say for another one that it is.
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
			l, missing := passOver(w).rebuildLedger()
			if len(l.Members) != 3 || l.Members[newcomer] != "" || l.Step == nil || l.Step.Kind != c.kind || !slices.Equal(l.Step.Wave(), c.wave) || len(missing) > 0 {
				t.Errorf("%s, missing %v", ledgerInWords(l), missing)
			}
		})
	}
}

// What a ring of several nodes might hold that they no longer own is dropped once more; a single node owns all.
func TestWhatIsDoneOnceMoreForALostLedger(t *testing.T) {
	for nodes, again := range map[int32]bool{1: false, 2: true} {
		w := newWorld(t, datacenter("dc1", nodes))
		w.settle()
		w.snapshot.Ledger = nil
		if l, _ := passOver(w).rebuildLedger(); len(l.Members) != int(nodes) || (len(l.Cleanup) > 0) != again || l.SystemKeyspaces != again {
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
		w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters = append(s.Datacenters, added("dc2", 1, 1)) })
		w.until(func(s *ledger.Step) bool { return s.Stage == stage })
		w.snapshot.Ledger = nil
		l, _ := passOver(w).rebuildLedger()
		if l.Step == nil || l.Step.Stage != c.found || l.IsFormed("dc2") == c.joins || (len(l.Step.Seeds) > 0) != c.joins || len(l.Step.Tickets) != 2 {
			t.Errorf("%s: %s with seeds %v", stage, ledgerInWords(l), l.Step.Seeds)
		}
	}
}
