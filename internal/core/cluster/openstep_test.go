package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

const (
	first, second, third = "orders-dc1-r1-0", "orders-dc1-r2-0", "orders-dc1-r3-0"
)

// inStage is a world of three nodes whose first step has just come to a stage.
func inStage(t *testing.T, stage ledger.Stage) *world {
	t.Helper()
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	for range 100 {
		if l := w.snapshot.Ledger; l != nil && l.Step != nil && l.Step.Stage == stage {
			return w
		}
		w.pass()
	}
	t.Fatalf("never in stage %s", stage)
	return nil
}

// deleting marks a record as being deleted.
func deleting(n *facts.Node) {
	when := metav1.Now()
	n.Record.DeletionTimestamp = &when
}

// applied are the names of the records that a plan changes.
func applied(p plan.Plan) []string {
	var out []string
	for _, w := range p.Writes {
		if _, ok := w.Object.(*v1alpha1.CassandraNode); ok && w.Verb == plan.Apply {
			out = append(out, w.Object.GetName())
		}
	}
	return out
}

// run is one stage of the open step, alone.
func run(w *world) (plan.Plan, result) {
	p := passOver(w)
	r := p.stage(w.snapshot.Ledger.Step)
	return p.plan, r
}

func want(t *testing.T, made plan.Plan, r result, outcome plan.Outcome, words string, names ...string) {
	t.Helper()
	if got := applied(made); r.outcome != outcome || !strings.Contains(r.message, words) || !slices.Equal(got, names) {
		t.Errorf("%s: %q, changes %v; want %s: %q, changes %v", r.outcome, r.message, got, outcome, words, names)
	}
}

func TestATicketThatARecordLacksIsIssued(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		issued []string
	}{
		"none lacks one": {func(*world) {}, nil},
		"two lack one": {func(w *world) {
			w.snapshot.Nodes[first].Record.Spec.Join, w.snapshot.Nodes[third].Record.Spec.Join = nil, nil
		}, []string{first, third}},
		"one is a member already": {func(w *world) {
			n := w.snapshot.Nodes[first].Record
			n.Spec.Join, n.Spec.Member = nil, &v1alpha1.Member{}
		}, nil},
		"one is being deleted":    {func(w *world) { n := w.snapshot.Nodes[first]; n.Record.Spec.Join = nil; deleting(n) }, nil},
		"one has no record":       {func(w *world) { w.snapshot.Nodes[first].Record = nil }, nil},
		"nothing of one is there": {func(w *world) { delete(w.snapshot.Nodes, first) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := forming(t, v1alpha1.DiskJoining, three...)
			c.change(w)
			made, r := run(w)
			if len(c.issued) > 0 {
				want(t, made, r, plan.Act, plural(len(c.issued), "node")+" get their tickets", c.issued...)
			} else if got := applied(made); r.outcome != plan.Wait || len(got) != 0 {
				t.Errorf("%s, changes %v; want no ticket", r.outcome, got)
			}
		})
	}
}

func TestAStepAboutNobodyHasNoProgress(t *testing.T) {
	p := passOver(inStage(t, ledger.StageTickets))
	p.describe(&ledger.Step{}, 0, "waiting")
	if c := p.plan.Current; c.Progress != nil || c.Message != "waiting" {
		t.Errorf("current %+v", c)
	}
}

func TestLatecomersAreWithdrawnOneByOne(t *testing.T) {
	overdue := func(t *testing.T, late ...string) *world {
		w := forming(t, v1alpha1.DiskJoining, late...)
		finished := w.snapshot.Nodes[third].Record.Status.Join.FinishedAt
		w.now = finished.Add(10 * time.Minute)
		return w
	}
	t.Run("at the end of the patience", func(t *testing.T) {
		w := overdue(t, first, second)
		made, r := run(w)
		want(t, made, r, plan.Act, "withdrawing the ticket of "+first, first)
		w.now = w.now.Add(-1)
		p := passOver(w)
		p.plan.Wake = time.Hour
		if r := p.stage(w.snapshot.Ledger.Step); r.outcome != plan.Wait || len(p.plan.Writes) > 0 || p.plan.Wake != 1 {
			t.Errorf("%s, writes %v, wakes in %s; want to look again at the end of the patience", r.outcome, p.plan.Writes, p.plan.Wake)
		}
	})
	for name, change := range map[string]func(*world){
		"the first has no record":            func(w *world) { w.snapshot.Nodes[first].Record = nil },
		"the first is in the ring after all": func(w *world) { w.snapshot.Nodes[first].Record.Status.Disk = v1alpha1.DiskMember },
	} {
		t.Run(name, func(t *testing.T) {
			w := overdue(t, first, second)
			change(w)
			made, r := run(w)
			want(t, made, r, plan.Act, "withdrawing the ticket of "+second, second)
		})
	}
	t.Run("the first has no ticket, but it cannot get one either", func(t *testing.T) {
		w := overdue(t, first, second)
		n := w.snapshot.Nodes[first]
		n.Record.Spec.Join = nil
		deleting(n)
		made, r := run(w)
		want(t, made, r, plan.Act, "withdrawing the ticket of "+second, second)
	})
	t.Run("again when the pod that had the ticket is gone", func(t *testing.T) {
		for before, c := range map[string]struct {
			spoke  string // the pod that last spoke
			writes bool
		}{
			"":      {"gone", true},
			"older": {"gone", true},
			"gone":  {"gone", false},
			"none":  {"", false},
		} {
			w := overdue(t, first)
			n := w.snapshot.Nodes[first]
			n.Record.Spec.Join.Withdraw = &v1alpha1.Withdrawal{PodGone: uidOrNone(before)}
			n.Record.Status.PodUID = uidOrNone(c.spoke)
			made, r := run(w)
			if got := applied(made); (len(got) > 0) != c.writes {
				t.Errorf("withdrawn for pod %q, %q has spoken: changes %v, %s", before, c.spoke, got, r.message)
			}
			if r.outcome != plan.Act && !strings.Contains(r.message, "waiting for 1 node to acknowledge") {
				t.Errorf("says %q", r.message)
			}
		}
	})
}

func TestEveryRecordLearnsWhoIsAMember(t *testing.T) {
	member := func(w *world, names ...string) {
		for _, name := range names {
			r := w.snapshot.Nodes[name].Record
			r.Spec.Join, r.Spec.Member = nil, &v1alpha1.Member{HostID: hostID(name)}
		}
	}
	ticket := func(w *world, names ...string) {
		for _, name := range names {
			r := w.snapshot.Nodes[name].Record
			r.Spec.Member, r.Spec.Join = nil, &v1alpha1.JoinTicket{Intent: v1alpha1.Intent{ID: r.Status.Join.ID}}
		}
	}
	for name, c := range map[string]struct {
		change  func(*world)
		outcome plan.Outcome
		words   string
		written []string
		percent int32
	}{
		"all are to learn it":             {func(w *world) { ticket(w, three...) }, plan.Act, "3 nodes become members", three, 0},
		"one knows it already":            {func(w *world) { ticket(w, second, third) }, plan.Act, "2 nodes become members", []string{second, third}, 33},
		"one has no record":               {func(w *world) { ticket(w, second, third); w.snapshot.Nodes[first].Record = nil }, plan.Act, "2 nodes", []string{second, third}, 0},
		"nothing of one is there":         {func(w *world) { ticket(w, second, third); delete(w.snapshot.Nodes, first) }, plan.Act, "2 nodes", []string{second, third}, 0},
		"one is being deleted":            {func(w *world) { ticket(w, three...); deleting(w.snapshot.Nodes[first]) }, plan.Act, "2 nodes", []string{second, third}, 0},
		"one has not finished its join":   {func(w *world) { ticket(w, three...); w.snapshot.Nodes[first].Record.Status.Join.FinishedAt = nil }, plan.Act, "2 nodes", []string{second, third}, 0},
		"one has not said anything":       {func(w *world) { ticket(w, three...); w.snapshot.Nodes[first].Record.Status.Join = nil }, plan.Act, "2 nodes", []string{second, third}, 0},
		"one has said it of another":      {func(w *world) { ticket(w, three...); w.snapshot.Nodes[first].Record.Status.Join.ID = "x" }, plan.Act, "2 nodes", []string{second, third}, 0},
		"one was made anew, as no member": {func(w *world) { r := w.snapshot.Nodes[first].Record; r.Spec.Member, r.Spec.Join = nil, nil }, plan.Act, "1 node", []string{first}, 66},
		"one member still has its ticket": {func(w *world) {
			r := w.snapshot.Nodes[first].Record
			ticket(w, first)
			r.Spec.Member = &v1alpha1.Member{}
		}, plan.Act, "1 node", []string{first}, 66},
		"all but one, which is missing":       {func(w *world) { w.snapshot.Nodes[third].Record = nil }, plan.Wait, "waiting for " + third, nil, 66},
		"all but one, which has not finished": {func(w *world) { ticket(w, first); w.snapshot.Nodes[first].Record.Status.Join.FinishedAt = nil }, plan.Wait, "waiting for " + first, nil, 66},
		"all":                                 {func(*world) {}, plan.Act, "every record knows its member", nil, 100},
	} {
		t.Run(name, func(t *testing.T) {
			w := inStage(t, ledger.StageFormed)
			member(w, three...)
			c.change(w)
			made, r := run(w)
			want(t, made, r, c.outcome, c.words, c.written...)
			if got := *made.Current.Progress; got != c.percent {
				t.Errorf("progress %d %%, want %d %%", got, c.percent)
			}
			if moved := slices.ContainsFunc(made.Writes, func(w plan.Write) bool { return w.Verb == plan.PutLedger }); moved != (name == "all") {
				t.Errorf("the step goes on: %v", moved)
			}
		})
	}
}

func TestWhoSetsTheSystemKeyspaces(t *testing.T) {
	asked := func(w *world, name string, id string) {
		w.snapshot.Nodes[name].Record.Spec.Operations = []v1alpha1.OperationIntent{{Intent: v1alpha1.Intent{ID: id}}}
	}
	for name, c := range map[string]struct {
		change func(*world)
		want   string
	}{
		"the first that serves the ring":         {func(*world) {}, first},
		"the one that was asked":                 {func(w *world) { asked(w, second, "cluster--1/keyspaces/"+second) }, second},
		"not one that was asked the time before": {func(w *world) { asked(w, second, "cluster--1/keyspaces/"+second); w.snapshot.Ledger.Step.Attempt = 1 }, first},
		"the one that was asked again":           {func(w *world) { asked(w, second, "cluster--1/keyspaces-1/"+second); w.snapshot.Ledger.Step.Attempt = 1 }, second},
		"not one that was asked by another step": {func(w *world) { asked(w, second, "cluster--9/keyspaces/"+second) }, first},
		"not one without a record":               {func(w *world) { w.snapshot.Nodes[first].Record = nil }, second},
		"not one of which nothing is there":      {func(w *world) { delete(w.snapshot.Nodes, first) }, second},
		"not one that is being deleted":          {func(w *world) { deleting(w.snapshot.Nodes[first]) }, second},
		"not one that is not NORMAL":             {func(w *world) { w.snapshot.Nodes[first].Record.Status.Phase = v1alpha1.PhaseStarting }, second},
		"not one whose status is a former pod's": {func(w *world) { w.snapshot.Nodes[first].Record.Status.PodUID = "former" }, second},
		"nobody": {func(w *world) {
			for _, name := range three {
				w.snapshot.Nodes[name].Record.Status.Phase = v1alpha1.PhaseStarting
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := inStage(t, ledger.StageKeyspaces)
			for _, name := range three {
				w.snapshot.Nodes[name].Record.Spec.Operations, w.snapshot.Nodes[name].Record.Status.Operations = nil, nil
			}
			c.change(w)
			p := passOver(w)
			got := ""
			if n := p.administrator(w.snapshot.Ledger.Step); n != nil {
				got = n.Name
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestReplicasOfTheSystemKeyspaces(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		want   map[string]int32
	}{
		"as many as keyspaces of users": {func(*world) {}, map[string]int32{"dc1": 3}},
		"fewer, with fewer members":     {func(w *world) { delete(w.snapshot.Ledger.Members, first) }, map[string]int32{"dc1": 2}},
		"as many, with a record away":   {func(w *world) { w.snapshot.Nodes[first].Record = nil }, map[string]int32{"dc1": 3}},
		"none where no nodes are": {func(w *world) {
			w.snapshot.Cluster.Spec.Datacenters = append(w.snapshot.Cluster.Spec.Datacenters, datacenter("dc2", 1))
		}, map[string]int32{"dc1": 3}},
		"none where nobody is a member": {func(w *world) {
			w.snapshot.Cluster.Spec.Datacenters = append(w.snapshot.Cluster.Spec.Datacenters, datacenter("dc2", 1))
			w.snapshot.Ledger.Formed = append(w.snapshot.Ledger.Formed, "dc2")
		}, map[string]int32{"dc1": 3}},
		"none in what is still being added": {func(w *world) {
			w.snapshot.Cluster.Spec.Datacenters = append(w.snapshot.Cluster.Spec.Datacenters, datacenter("dc2", 1))
			w.snapshot.Nodes[first].Record.Spec.Datacenter = "dc2"
		}, map[string]int32{"dc1": 2}},
		"by the name that the ring knows": {func(w *world) { w.snapshot.Cluster.Spec.Datacenters[0].DatacenterName = "DC One" }, map[string]int32{"DC One": 3}},
	} {
		t.Run(name, func(t *testing.T) {
			w := inStage(t, ledger.StageKeyspaces)
			c.change(w)
			got := passOver(w).systemReplication()
			if len(got) != len(c.want) {
				t.Fatalf("%v, want %v", got, c.want)
			}
			for dc, n := range c.want {
				if got[dc] != n {
					t.Errorf("%v, want %v", got, c.want)
				}
			}
		})
	}
}

// One system keyspace with fewer replicas than wanted is enough; what cannot be read is nobody's business.
func TestWhichSystemKeyspacesHaveTooFewReplicas(t *testing.T) {
	const enough, fewer, odd = "NetworkTopologyStrategy {dc1=3}", "NetworkTopologyStrategy {dc1=2}", "Own {x=1}}"
	for name, c := range map[string]struct {
		keyspaces map[string]string
		want      bool
	}{
		"all have enough":                     {map[string]string{"system_auth": enough, "system_distributed": enough, "system_traces": enough}, false},
		"one has not":                         {map[string]string{"system_auth": enough, "system_distributed": enough, "system_traces": fewer}, true},
		"the only one has not":                {map[string]string{"system_traces": fewer}, true},
		"one cannot be read, another has not": {map[string]string{"system_auth": odd, "system_distributed": odd, "system_traces": fewer}, true},
		"one cannot be read":                  {map[string]string{"system_auth": odd, "system_distributed": enough}, false},
		"one is nowhere":                      {map[string]string{"system_auth": "NetworkTopologyStrategy {dc2=3}"}, true},
		"there are none":                      {nil, false},
	} {
		if got := tooFew(&facts.Ring{Keyspaces: c.keyspaces}, map[string]int32{"dc1": 3}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestClientsAreLetInEverywhere(t *testing.T) {
	open := func(w *world, names ...string) {
		for _, name := range names {
			s := &w.snapshot.Nodes[name].Record.Spec
			s.ClientTraffic, s.Operations = v1alpha1.TrafficOpen, nil
		}
	}
	closed := func(w *world, names ...string) {
		for _, name := range names {
			w.snapshot.Nodes[name].Record.Spec.ClientTraffic = v1alpha1.TrafficClosed
		}
	}
	for name, c := range map[string]struct {
		change  func(*world)
		outcome plan.Outcome
		words   string
		written []string
	}{
		"all are closed":                {func(w *world) { closed(w, three...) }, plan.Act, "3 nodes open", three},
		"one is open":                   {func(w *world) { closed(w, second, third) }, plan.Act, "2 nodes open", []string{second, third}},
		"one still has its operation":   {func(w *world) { w.snapshot.Nodes[first].Record.Spec.Operations = []v1alpha1.OperationIntent{{}} }, plan.Act, "1 node open", []string{first}},
		"the first has no record":       {func(w *world) { closed(w, three...); w.snapshot.Nodes[first].Record = nil }, plan.Wait, "record of " + first, nil},
		"nothing of the first is there": {func(w *world) { closed(w, three...); delete(w.snapshot.Nodes, first) }, plan.Wait, "record of " + first, nil},
		"the first is being deleted":    {func(w *world) { closed(w, three...); deleting(w.snapshot.Nodes[first]) }, plan.Wait, "record of " + first, nil},
		"all are open":                  {func(*world) {}, plan.Done, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := inStage(t, ledger.StageOpen)
			open(w, three...)
			c.change(w)
			made, r := run(w)
			want(t, made, r, c.outcome, c.words, c.written...)
			if over := len(made.Finished) > 0; over != (name == "all are open") {
				t.Errorf("finished %+v", made.Finished)
			}
		})
	}
}

func TestAStageThatIsNotKnownIsLeftToTheReleaseThatBeganIt(t *testing.T) {
	w := inStage(t, ledger.StageOpen)
	w.snapshot.Ledger.Step.Stage = "Dancing"
	made := w.pass()
	wantStalled(t, made, v1alpha1.ReasonUnsupportedChange, "Dancing", "cluster--1")
}
