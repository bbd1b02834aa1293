package replace

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
)

var now = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// lostA is a ring of a, b and c, in racks of their own, in which a has found an empty disk.
func lostA() *facts.Snapshot {
	s := &facts.Snapshot{Cluster: &v1alpha1.CassandraCluster{}, Nodes: map[string]*facts.Node{},
		Ledger: &ledger.Ledger{Ring: ledger.Ring{Formed: []string{"dc1"}, Members: map[string]string{}}}}
	view := func(of string) *facts.Ring {
		r := &facts.Ring{Mode: facts.ModeNormal, HostID: "host-" + of,
			Keyspaces: map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"}}
		for i, name := range []string{"a", "b", "c"} {
			r.Endpoints = append(r.Endpoints, facts.Endpoint{Address: "10.0.0." + name, HostID: "host-" + name,
				Datacenter: "dc1", Rack: name, Status: facts.StatusNormal, Live: name != "a",
				Tokens: []int64{int64(i)}})
		}
		return r
	}
	for _, name := range []string{"a", "b", "c"} {
		n := &facts.Node{Name: name, Record: &v1alpha1.CassandraNode{}, Pod: &corev1.Pod{}}
		n.Pod.UID, n.Record.Name = "pod", name
		n.Record.Spec.Datacenter, n.Record.Spec.Member = "dc1", &v1alpha1.Member{HostID: "host-" + name}
		n.Agent = &facts.Agent{PodUID: "pod", Disk: v1alpha1.DiskMember, Phase: v1alpha1.PhaseNormal,
			Process: facts.ProcessRunning, Ring: view(name)}
		s.Nodes[name], s.Ledger.Members[name] = n, "host-"+name
	}
	s.Nodes["a"].Agent = &facts.Agent{PodUID: "pod", Disk: v1alpha1.DiskEmpty, Phase: v1alpha1.PhaseDataLost,
		Process: facts.ProcessAbsent}
	return s
}

// since has the ledger know for so long that a is lost.
func since(s *facts.Snapshot, d time.Duration) {
	s.Ledger.Lost = []ledger.Lost{{Node: "a", HostID: "host-a", Since: now.Add(-d)}}
}

// When a member is replaced, what holds that back, and who repairs before.
func TestWhenAMemberIsReplaced(t *testing.T) {
	except := func(kind v1alpha1.ExceptionType) func(*facts.Snapshot) {
		return func(s *facts.Snapshot) {
			s.Cluster.Spec.Exceptions = append(s.Cluster.Spec.Exceptions, v1alpha1.Exception{Type: kind, Node: "a",
				Keyspace: "shop", Until: metav1.NewTime(now.Add(time.Hour))})
		}
	}
	recommend := func(s *facts.Snapshot) { s.Cluster.Spec.Replacement.Mode = v1alpha1.AutomationRecommend }
	long := func(s *facts.Snapshot) { since(s, time.Hour) }
	seen := func(s *facts.Snapshot) { s.Nodes["b"].Agent.Ring.Endpoints[0].Live = true }
	short := func(s *facts.Snapshot) { since(s, 14*time.Minute) }
	silent := func(s *facts.Snapshot) { s.Nodes["a"].Agent = nil }
	down := func(s *facts.Snapshot) { s.Nodes["c"].Agent = nil }
	for name, c := range map[string]struct {
		change changes
		want   string
	}{
		"it is noticed":                  {nil, "settled: 1 lost"},
		"nobody is lost":                 {changes{seen}, "nothing"},
		"it comes back":                  {changes{long, seen}, "settled: 0 lost"},
		"its agent is silent":            {changes{long, silent}, "wait"},
		"not for long enough":            {changes{short}, "wait"},
		"for long enough":                {changes{long}, "open Before"},
		"a person decides":               {changes{long, recommend}, "recommend"},
		"a person has decided":           {changes{long, recommend, except(v1alpha1.ExceptionReplace)}, "open Before"},
		"another rack is down":           {changes{long, down}, "refused SecondRackDown"},
		"that is accepted":               {changes{long, down, except(v1alpha1.ExceptionAcceptLoss)}, "open After"},
		"a keyspace has a single copy":   {changes{long, single}, "refused LossNotAccepted"},
		"which may be lost":              {changes{long, single, except(v1alpha1.ExceptionAcceptLoss)}, "open Before"},
		"its disk fails":                 {changes{long, fails(facts.ProcessAbsent)}, "open Before"},
		"its disk fails, and it serves":  {changes{long, fails(facts.ProcessRunning)}, "settled: 0 lost"},
		"its disk fails no more":         {changes{long, fails(facts.ProcessAbsent), works}, "wait"},
		"its pod with its data is gone":  {changes{long, silent, inPod("former")}, "open Before"},
		"its pod with its data is there": {changes{long, silent, inPod("pod")}, "wait"},
		"its pod is gone, with claims":   {changes{long, silent, gone}, "wait"},
		"the ledger had lost its ticket": {changes{ticketed}, "lost a"},
		"and that it was removed":        {changes{long, removedA}, "remove After"},
	} {
		s := lostA()
		for _, change := range c.change {
			change(s)
		}
		if got := inShort(assess.NewView(s, now)); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

type changes []func(*facts.Snapshot)

// fails has the agent of a find that its disk fails, on which the JVM runs or not.
func fails(process facts.ProcessState) func(*facts.Snapshot) {
	return func(s *facts.Snapshot) {
		s.Nodes["a"].Agent = &facts.Agent{PodUID: "pod", Disk: v1alpha1.DiskMember, Phase: v1alpha1.PhaseFailed,
			Process: process, DiskFailing: "read-only"}
	}
}

// inPod has the agent of a have last spoken from a pod in which the data was.
func inPod(uid types.UID) func(*facts.Snapshot) {
	return func(s *facts.Snapshot) {
		s.Nodes["a"].Record.Status.PodUID = uid
		s.Nodes["a"].Record.Spec.Pod.Storage.Ephemeral = &v1alpha1.EphemeralStorage{}
	}
}

func gone(s *facts.Snapshot) { s.Nodes["a"].Record.Status.PodUID = "former" }

func works(s *facts.Snapshot) { s.Nodes["a"].Agent.DiskFailing = "" }

func single(s *facts.Snapshot) {
	for _, n := range s.Nodes {
		if n.Agent.Ring != nil {
			n.Agent.Ring.Keyspaces["shop"] = "NetworkTopologyStrategy {dc1=1}"
		}
	}
}

func ticketed(s *facts.Snapshot) {
	s.Nodes["a"].Record.Spec.Join = &v1alpha1.JoinTicket{Intent: v1alpha1.Intent{ID: "step/join/a"},
		Mode: v1alpha1.JoinReplace, Replace: &v1alpha1.ReplaceTarget{HostID: "host-a", Address: "10.0.0.1"}}
}

func removedA(s *facts.Snapshot) {
	for _, n := range s.Nodes {
		if r := n.Agent.Ring; r != nil {
			r.Endpoints = r.Endpoints[1:]
		}
	}
}

func inShort(v *assess.View) string {
	p := replacer{rules: guard.All()}.due(v)
	switch {
	case p == nil:
		return "nothing"
	case p.Lost != nil:
		return "lost " + p.Lost.Nodes[0]
	case p.Settled != nil:
		var r ledger.Ring
		p.Settled.Change(&r)
		return "settled: " + string(rune('0'+len(r.Lost))) + " lost"
	case p.Recommend != nil:
		return "recommend"
	case len(p.Refusals) > 0:
		return "refused " + string(p.Refusals[0].Reason)
	case p.Wait != "":
		return "wait"
	}
	o, refusals := p.Open()
	if len(refusals) > 0 {
		return "refused at last: " + refusals[0].Message
	}
	state := o.State.(State)
	if o.Stage == ledger.StageRemove {
		return "remove " + string(state.Repair)
	}
	if state.Replaces.HostID != "host-a" || len(state.Tokens["a"]) != 1 {
		return "opened for another"
	}
	return "open " + string(state.Repair) + " " + strings.Join(state.Repairers, ",")
}
