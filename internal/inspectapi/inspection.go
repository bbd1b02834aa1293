package inspectapi

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

// Inspection is what the operator knows about a cluster at one moment, and what it decides on that.
type Inspection struct {
	// Operator that answers.
	Operator Operator `json:"operator"`
	// ObservedAt is the operator's clock when it looked.
	ObservedAt metav1.Time `json:"observedAt"`
	// Snapshot is what it saw, in brief.
	Snapshot Snapshot `json:"snapshot"`
	// Plan is what it would do now.
	Plan Plan `json:"plan"`
	// RollOut is what it takes to bring the ring to the spec; nil if nothing changes.
	RollOut *plan.RollOut `json:"rollOut,omitempty"`
}

// Operator is who answers.
type Operator struct {
	Pod     string `json:"pod"`
	Version string `json:"version"`
}

// Snapshot is a facts.Snapshot in brief: what a user needs to understand the plan. Objects are
// named, not shown.
type Snapshot struct {
	Namespace  string    `json:"namespace"`
	Cluster    string    `json:"cluster"`
	UID        types.UID `json:"uid"`
	Generation int64     `json:"generation"`
	Deleting   bool      `json:"deleting,omitempty"`
	Nodes      []Node    `json:"nodes"`
	// Ledger is nil if there is none.
	Ledger        *Ledger `json:"ledger,omitempty"`
	LedgerProblem string  `json:"ledgerProblem,omitempty"`
	// Foreign are objects of others under names that the cluster needs, as Kind/name.
	Foreign []string `json:"foreign,omitempty"`
	// Predecessor are objects of an earlier cluster of the same name that must go first.
	Predecessor []string `json:"predecessor,omitempty"`
}

// Node is one node in brief.
type Node struct {
	Name       string `json:"name"`
	Datacenter string `json:"datacenter,omitempty"`
	Rack       string `json:"rack,omitempty"`
	// Record, Pod and Claims say what exists of it.
	Record bool `json:"record"`
	Pod    bool `json:"pod"`
	Claims int  `json:"claims"`
	// Host the pod is on.
	Host string `json:"host,omitempty"`
	// Agent is what the agent of the present pod answered; nil if it did not, with the reason in
	// Unreachable.
	Agent       *Agent `json:"agent,omitempty"`
	Unreachable string `json:"unreachable,omitempty"`
}

// Agent is the answer of an agent in brief.
type Agent struct {
	ObservedAt metav1.Time            `json:"observedAt"`
	Version    string                 `json:"version,omitempty"`
	Address    string                 `json:"address,omitempty"`
	HostID     string                 `json:"hostID,omitempty"`
	Disk       v1alpha1.DiskState     `json:"disk,omitempty"`
	Phase      v1alpha1.NodePhase     `json:"phase,omitempty"`
	Process    facts.ProcessState     `json:"process,omitempty"`
	Traffic    v1alpha1.ClientTraffic `json:"traffic,omitempty"`
	Ready      bool                   `json:"ready"`
	Message    string                 `json:"message,omitempty"`
	// Mode is Cassandra's own word for its state; empty while no JVM answers.
	Mode facts.Mode `json:"mode,omitempty"`
}

// Ledger is what is written down of a cluster, in brief.
type Ledger struct {
	Formed  []string `json:"formed,omitempty"`
	Members int      `json:"members"`
	// Steps that are open, and those that are suspended.
	Steps []Step `json:"steps,omitempty"`
}

// Step is a step of the ledger.
type Step struct {
	ID         string       `json:"id"`
	Kind       ledger.Kind  `json:"kind"`
	Stage      ledger.Stage `json:"stage"`
	StageSince metav1.Time  `json:"stageSince"`
	Nodes      []string     `json:"nodes,omitempty"`
	// Suspended says that it waits until a step of a higher class is closed.
	Suspended bool `json:"suspended,omitempty"`
}

// Plan is a plan.Plan whose writes are named, not shown.
type Plan struct {
	// Steps that were reached, in order.
	Steps []plan.Report `json:"steps"`
	// Writes that the operator would do now, in order.
	Writes  []Write                `json:"writes,omitempty"`
	Stalled *plan.Stall            `json:"stalled,omitempty"`
	Blocked []v1alpha1.BlockedStep `json:"blocked,omitempty"`
	Notices []v1alpha1.Notice      `json:"notices,omitempty"`
	Current *v1alpha1.StepStatus   `json:"current,omitempty"`
	// WakeSeconds is when the operator looks again even if nothing happens; 0 if only an event can
	// change the plan.
	WakeSeconds float64 `json:"wakeSeconds,omitempty"`
}

// Write is one write in brief.
type Write struct {
	Verb plan.Verb `json:"verb"`
	// Kind and Name of the object; empty where the verb says it all.
	Kind string    `json:"kind,omitempty"`
	Name string    `json:"name,omitempty"`
	UID  types.UID `json:"uid,omitempty"`
	// Live says that the operator reads the cluster once more from the API server and the agents
	// before it does this.
	Live bool `json:"live,omitempty"`
	// Text is the line that the operator's log has for the write.
	Text string `json:"text"`
}

// Of puts an observation and the plan that follows from it in brief.
func Of(s *facts.Snapshot, p plan.Plan, by Operator, now time.Time) *Inspection {
	return &Inspection{Operator: by, ObservedAt: metav1.NewTime(now.UTC()).Rfc3339Copy(), Snapshot: snapshotOf(s),
		Plan: planOf(p)}
}

func snapshotOf(s *facts.Snapshot) Snapshot {
	out := Snapshot{
		Namespace:     s.Cluster.Namespace,
		Cluster:       s.Cluster.Name,
		UID:           s.Cluster.UID,
		Generation:    s.Cluster.Generation,
		Deleting:      s.Cluster.DeletionTimestamp != nil,
		Nodes:         make([]Node, 0, len(s.Nodes)),
		LedgerProblem: s.LedgerProblem,
		Foreign:       namesOf(s.Foreign),
		Predecessor:   namesOf(s.Predecessor),
	}
	for _, name := range s.Names() {
		out.Nodes = append(out.Nodes, nodeOf(s.Nodes[name]))
	}
	if l := s.Ledger; l != nil {
		out.Ledger = &Ledger{Formed: l.Formed, Members: len(l.Members)}
		for i, s := range slices.Concat(l.Open(), l.Suspended) {
			out.Ledger.Steps = append(out.Ledger.Steps, Step{
				ID: s.ID, Kind: s.Kind, Stage: s.Stage, StageSince: metav1.NewTime(s.StageSince.UTC()), Nodes: s.Wave(),
				Suspended: i >= len(l.Open()),
			})
		}
	}
	return out
}

func namesOf(objects []facts.ObjectName) []string {
	var out []string
	for _, o := range objects {
		out = append(out, o.String())
	}
	return out
}

func nodeOf(n *facts.Node) Node {
	out := Node{Name: n.Name, Record: n.Record != nil, Pod: n.Pod != nil, Claims: len(n.Claims)}
	if n.Record != nil {
		out.Datacenter, out.Rack = n.Record.Spec.Datacenter, n.Record.Spec.Rack
	}
	if n.Pod == nil {
		return out
	}
	out.Host = n.Pod.Spec.NodeName
	a := n.CurrentAgent()
	if a == nil {
		switch {
		case n.Unreachable != "":
			out.Unreachable = n.Unreachable
		case n.Agent != nil:
			out.Unreachable = "what answered was an earlier pod"
		default:
			out.Unreachable = "the pod has no address yet"
		}
		return out
	}
	out.Agent = &Agent{
		ObservedAt: metav1.NewTime(a.ObservedAt.UTC()),
		Version:    a.Version,
		Address:    a.Address,
		HostID:     a.HostID,
		Disk:       a.Disk,
		Phase:      a.Phase,
		Process:    a.Process,
		Traffic:    a.Traffic,
		Ready:      a.Ready,
		Message:    a.Message,
	}
	if a.Ring != nil {
		out.Agent.Mode = a.Ring.Mode
	}
	return out
}

func planOf(p plan.Plan) Plan {
	out := Plan{
		Steps: p.Steps, Stalled: p.Stalled, Blocked: p.Blocked, Notices: p.Notices, Current: p.Current,
		WakeSeconds: p.Wake.Seconds(),
	}
	for _, w := range p.Writes {
		brief := Write{Verb: w.Verb, Name: w.Node, UID: w.UID, Live: w.Live, Text: w.String()}
		if w.Object != nil {
			brief.Kind, brief.Name = w.Object.GetObjectKind().GroupVersionKind().Kind, w.Object.GetName()
		}
		out.Writes = append(out.Writes, brief)
	}
	return out
}
