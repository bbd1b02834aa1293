package inspectapi

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/ring"
)

const (
	// mostTasks and mostConfigurations bound a View, beside the rules of the API.
	mostTasks, mostConfigurations = 100, 100
	// mostTaskNodes of a task are shown: those that run and those that failed.
	mostTaskNodes = 20
)

// View is all that the console shows of a cluster, as of one pass of the operator. Two views of the
// same state are the same text: it has no time of its own.
type View struct {
	Operator   Operator `json:"operator"`
	Namespace  string   `json:"namespace"`
	Cluster    string   `json:"cluster"`
	Generation int64    `json:"generation"`
	Deleting   bool     `json:"deleting,omitempty"`
	// Wanted is the version of the spec.
	Wanted  string `json:"wanted"`
	Paused  bool   `json:"paused,omitempty"`
	Stopped bool   `json:"stopped,omitempty"`

	Status        v1alpha1.CassandraClusterStatus `json:"status"`
	Ledger        *Ledger                         `json:"ledger,omitempty"`
	LedgerProblem string                          `json:"ledgerProblem,omitempty"`
	Plan          Plan                            `json:"plan"`
	// RollOut without the files of its racks; nil if nothing changes.
	RollOut *plan.RollOut `json:"rollOut,omitempty"`

	Nodes []ViewNode `json:"nodes"`
	// Keyspaces that are replicated, with their replication.
	Keyspaces map[string]string `json:"keyspaces,omitempty"`
	// Tasks that name the cluster, the newest first.
	Tasks []ViewTask `json:"tasks,omitempty"`
	// Configurations that the nodes' records have, each once.
	Configurations []ViewConfiguration `json:"configurations,omitempty"`
}

// ViewNode is what the console shows of a node.
type ViewNode struct {
	Node
	Record *ViewRecord `json:"record,omitempty"`
	// Trouble is why the pod does not run, in words; empty if it does.
	Trouble string `json:"trouble,omitempty"`
	// Serves says that clients are served, as status.readyNodes counts it.
	Serves bool `json:"serves,omitempty"`
	// Release that the running Cassandra has, Streaming and Pending what it says of its streams and
	// ranges; Hints are its files of hints for others.
	Release   string `json:"release,omitempty"`
	Streaming bool   `json:"streaming,omitempty"`
	Pending   int    `json:"pending,omitempty"`
	Hints     int    `json:"hints,omitempty"`
	// Load, Free and Capacity are bytes: of its data, and of its volume; 0 if unknown.
	Load     int64 `json:"load,omitempty"`
	Free     int64 `json:"free,omitempty"`
	Capacity int64 `json:"capacity,omitempty"`
	// Owns is the share, from 0 to 1, of the datacenter's stored bytes that belongs on the node,
	// for the keyspace for which that is the largest.
	Owns float64 `json:"owns,omitempty"`
	// Tokens are its places in the ring, from 0 to 65535; empty while it has none.
	Tokens []uint16 `json:"tokens,omitempty"`
}

// ViewRecord is a node's record in brief.
type ViewRecord struct {
	State v1alpha1.NodeState `json:"state"`
	// Wanted are the types of the operations that are wanted, by id.
	Wanted map[string]v1alpha1.OperationType `json:"wanted,omitempty"`
	// Status without tokens, certificates and conditions.
	Status v1alpha1.CassandraNodeStatus `json:"status"`
}

// ViewTask is a CassandraTask in brief. Of its nodes it has those that run or failed.
type ViewTask struct {
	Name      string                       `json:"name"`
	Type      v1alpha1.TaskType            `json:"type"`
	CreatedAt metav1.Time                  `json:"createdAt"`
	Status    v1alpha1.CassandraTaskStatus `json:"status"`
}

// ViewConfiguration is one that nodes have. Environment variables, which may hold secrets, are left
// out.
type ViewConfiguration struct {
	Nodes         []string                   `json:"nodes"`
	Configuration v1alpha1.NodeConfiguration `json:"configuration"`
}

// Brief is what a list of clusters has of one.
type Brief struct {
	Namespace   string                    `json:"namespace"`
	Cluster     string                    `json:"cluster"`
	Wanted      string                    `json:"wanted"`
	Version     *v1alpha1.VersionRange    `json:"version,omitempty"`
	Nodes       int32                     `json:"nodes"`
	ReadyNodes  int32                     `json:"readyNodes"`
	Conditions  []metav1.Condition        `json:"conditions,omitempty"`
	Step        *v1alpha1.StepStatus      `json:"step,omitempty"`
	Blocked     int                       `json:"blocked,omitempty"`
	Notices     int                       `json:"notices,omitempty"`
	Recommended []v1alpha1.Recommendation `json:"recommended,omitempty"`
	Paused      bool                      `json:"paused,omitempty"`
	Stopped     bool                      `json:"stopped,omitempty"`
	Deleting    bool                      `json:"deleting,omitempty"`
}

// Fleet is the answer to FleetPath.
type Fleet struct {
	Clusters []Brief `json:"clusters"`
	// Left are clusters of which was not asked whether they may be seen.
	Left int `json:"left,omitempty"`
}

// BriefOf a cluster.
func BriefOf(c *v1alpha1.CassandraCluster) Brief {
	s := &c.Status
	return Brief{Namespace: c.Namespace, Cluster: c.Name, Wanted: c.Spec.Version, Version: s.Version, Nodes: s.Nodes,
		ReadyNodes: s.ReadyNodes, Conditions: s.Conditions, Step: s.Step, Blocked: len(s.Blocked),
		Notices: len(s.Notices), Recommended: s.Recommended, Paused: c.Spec.Paused, Stopped: c.Spec.Stopped,
		Deleting: c.DeletionTimestamp != nil}
}

// ViewOf puts an observation, the plan that follows from it and the status after it together.
// Serves says which nodes serve clients.
func ViewOf(s *facts.Snapshot, p plan.Plan, ahead *plan.RollOut, is v1alpha1.CassandraClusterStatus, by Operator,
	serves func(*facts.Node) bool) *View {
	brief := snapshotOf(s)
	v := &View{Operator: by, Namespace: brief.Namespace, Cluster: brief.Cluster, Generation: brief.Generation,
		Deleting: brief.Deleting, Wanted: s.Cluster.Spec.Version, Paused: s.Cluster.Spec.Paused,
		Stopped: s.Cluster.Spec.Stopped, Status: is, Ledger: brief.Ledger, LedgerProblem: brief.LedgerProblem,
		Plan: planOf(p), Nodes: make([]ViewNode, 0, len(brief.Nodes))}
	v.Plan.WakeSeconds = 0 // it is counted down
	if ahead != nil {
		short := *ahead
		short.Racks, v.RollOut = nil, &short
	}
	places := placesOf(s)
	v.Keyspaces = places.keyspaces
	for _, node := range brief.Nodes {
		n := s.Nodes[node.Name]
		out := ViewNode{Node: node, Serves: serves(n)}
		if n.CurrentAgent() == nil {
			out.Trouble = assess.Trouble(n)
		}
		out.fill(n)
		places.fill(&out, n)
		v.Nodes = append(v.Nodes, out)
	}
	v.Tasks, v.Configurations = tasksOf(s.Tasks), configurationsOf(s)
	return v
}

// fill in what record and agent say.
func (v *ViewNode) fill(n *facts.Node) {
	if r := n.Record; r != nil {
		v.Record = &ViewRecord{State: r.Spec.State, Status: r.Status, Wanted: map[string]v1alpha1.OperationType{}}
		v.Record.Status.Tokens, v.Record.Status.Certificates, v.Record.Status.Conditions = nil, nil, nil
		for _, o := range r.Spec.Operations {
			v.Record.Wanted[o.ID] = o.Type
		}
	}
	if v.Agent == nil {
		return
	}
	brief := *v.Agent
	brief.ObservedAt = metav1.Time{} // of each answer another one
	v.Agent = &brief
	if space := n.Agent.Space; space != nil {
		v.Load, v.Free, v.Capacity = space.Data, space.Free, space.Capacity
	}
	if r := n.Agent.Ring; r != nil {
		v.Release, v.Streaming, v.Pending = r.ReleaseVersion, r.Streaming, r.Pending
		for _, files := range r.Hints {
			v.Hints += files
		}
	}
}

// places are those of all members, as one of them sees the ring.
type places struct {
	endpoints map[string]*facts.Endpoint
	loads     map[string]ring.Load
	keyspaces map[string]string
}

func placesOf(s *facts.Snapshot) places {
	var r *facts.Ring
	for _, name := range s.Names() {
		if a := s.Nodes[name].CurrentAgent(); a != nil && a.Ring != nil && a.Ring.Mode == facts.ModeNormal {
			r = a.Ring // guards see to it that all see the same
			break
		}
	}
	if r == nil {
		return places{}
	}
	out := places{endpoints: r.ByHostIDs(), keyspaces: r.Keyspaces}
	if all, err := ring.New(r.Nodes()); err == nil { // else guards say what is wrong with it
		out.loads = all.Loads(assess.KeyspacesOf(r))
	}
	return out
}

func (p places) fill(v *ViewNode, n *facts.Node) {
	id := ""
	switch {
	case n.Record != nil && n.Record.Spec.Member != nil:
		id = n.Record.Spec.Member.HostID
	case v.Agent != nil:
		id = v.Agent.HostID
	}
	e := p.endpoints[id]
	if id == "" || e == nil || !e.Member() {
		return
	}
	v.Owns = p.loads[id].Share
	if v.Load == 0 {
		v.Load = e.Load
	}
	for _, token := range e.Tokens {
		const bits = 48
		v.Tokens = append(v.Tokens, uint16((uint64(token)^(1<<63))>>bits)) //nolint:gosec // its order is kept
	}
}

func tasksOf(tasks []*v1alpha1.CassandraTask) []ViewTask {
	var out []ViewTask
	for _, t := range slices.Backward(tasks) {
		if len(out) == mostTasks {
			break
		}
		brief := ViewTask{Name: t.Name, Type: t.Spec.Type, CreatedAt: t.CreationTimestamp, Status: t.Status}
		brief.Status.Nodes = nil
		for _, n := range t.Status.Nodes {
			if (n.Phase == v1alpha1.TaskRunning || n.Phase == v1alpha1.TaskFailed) &&
				len(brief.Status.Nodes) < mostTaskNodes {
				brief.Status.Nodes = append(brief.Status.Nodes, n)
			}
		}
		out = append(out, brief)
	}
	return out
}

func configurationsOf(s *facts.Snapshot) []ViewConfiguration {
	var out []ViewConfiguration
	known := map[string]int{}
	for _, n := range s.Records() {
		c := n.Record.Spec.Configuration
		c.Environment, c.RackName = nil, ""
		text, err := json.Marshal(c)
		if err != nil {
			continue // what came as JSON can be written as such
		}
		at, is := known[string(text)]
		if !is {
			if len(out) == mostConfigurations {
				continue
			}
			at = len(out)
			known[string(text)] = at
			out = append(out, ViewConfiguration{Configuration: c})
		}
		out[at].Nodes = append(out[at].Nodes, n.Name)
	}
	return out
}
