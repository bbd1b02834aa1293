package assess

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/render"
)

// View is what is known in one pass: the facts, the spec, and what they come to. Nobody changes it;
// a pass that writes the ledger goes on with another one.
type View struct {
	*facts.Snapshot
	Now time.Time
	// Wanted are the nodes that the spec describes, and the members of its racks that are to leave.
	Wanted []render.Wanted
	// SpecRejected says that the spec is refused: what exists is kept going, and nothing new
	// begins.
	SpecRejected bool
	// LedgerLost says that the ledger is lost, and that the one at hand is what could be rebuilt so
	// far.
	LedgerLost bool
	// RepairByHand are nodes that are not repaired before a person asks for it.
	RepairByHand []string

	authentication v1alpha1.AuthenticationMode
	encryption     *v1alpha1.NodeEncryption
	networkPolicy  v1alpha1.NetworkPolicyMode
	assessed       map[string]Node
	memberNames    []string
	once           map[string]any
	*kept
}

// kept is worked out when it is first asked for, and does not depend on the ledger.
type kept struct {
	names    []string
	sorted   []*facts.Node
	byName   map[string]*render.Wanted
	seen     *seenMembers
	alive    map[string][]string
	compared render.Comparison
	fixedOf  map[[2]facts.Hashes]bool
}

// NewView of a snapshot at a time.
func NewView(s *facts.Snapshot, now time.Time) *View {
	v := &View{
		Snapshot: s, Now: now, Wanted: Wanted(s, now),
		authentication: s.Authentication(), networkPolicy: s.NetworkPolicy(),
		encryption: s.Encryption(), once: map[string]any{},
		assessed: make(map[string]Node, len(s.Nodes)), kept: &kept{fixedOf: map[[2]facts.Hashes]bool{}},
	}
	digest, uses := v.TakenDigest(render.Image(s.Cluster, s.Install)), v.encryption.Uses()
	for i := range v.Wanted {
		v.Wanted[i].Pod.ImageDigest = digest
		v.Wanted[i].Configuration.Authentication = v.authenticationOf(v.Wanted[i].Name)
		v.Wanted[i].Configuration.Encryption, v.Wanted[i].Pod.Certificates = v.encryption, uses
	}
	v.addLeaving()
	for _, t := range s.Tasks {
		v.wantRestarts(t)
	}
	return v
}

// wantRestarts: a task that restarts nodes asks for that as the spec does, from when it is its turn
// until it has finished or is deleted.
func (v *View) wantRestarts(t *v1alpha1.CassandraTask) {
	if t.Spec.Type != v1alpha1.TaskRestart || t.DeletionTimestamp != nil || t.Status.Finished() {
		return
	}
	for _, n := range t.Status.Nodes {
		for i := range v.Wanted {
			if w := &v.Wanted[i]; w.Name == n.Node && !n.Phase.Final() {
				w.Configuration.RestartedAt = render.Latest(w.Configuration.RestartedAt, t.Status.StartedAt)
			}
		}
	}
}

// WithLedger is the view with another ledger: the one that the pass writes.
func (v *View) WithLedger(l *ledger.Ledger) *View {
	out, s := *v, *v.Snapshot
	s.Ledger = l
	out.Snapshot, out.assessed, out.memberNames = &s, make(map[string]Node, len(v.Nodes)), nil
	out.once = map[string]any{}
	return &out
}

// Without says that the ledger is lost, and that l is what could be rebuilt of it so far.
func (v *View) Without(l *ledger.Ledger) *View {
	out := v.WithLedger(l)
	out.LedgerLost = true
	return out
}

// Rejecting is the view with a spec that is refused.
func (v *View) Rejecting() *View {
	out := *v
	out.SpecRejected, out.once = true, map[string]any{}
	return &out
}

// Recommending is the view with nodes that are not repaired before a person asks for it.
func (v *View) Recommending(nodes []string) *View {
	out := *v
	out.RepairByHand, out.once = nodes, map[string]any{}
	return &out
}

// Once has something be worked out of a view once, by its name.
func Once[T any](v *View, name string, work func() T) T {
	out, known := v.once[name].(T)
	if !known {
		out = work()
		v.once[name] = out
	}
	return out
}

// Names of all nodes of which anything is known, sorted. Nobody may change the list.
func (v *View) Names() []string {
	if v.names == nil {
		v.names = v.Snapshot.Names()
	}
	return v.names
}

// Records are the nodes that have a record, sorted by name. Nobody may change the list.
func (v *View) Records() []*facts.Node {
	if v.sorted == nil {
		for _, name := range v.Names() {
			if n := v.Nodes[name]; n.Record != nil {
				v.sorted = append(v.sorted, n)
			}
		}
	}
	return v.sorted
}

// Members are the names of the ledger's members, sorted. Nobody may change the list.
func (v *View) Members() []string {
	if v.memberNames == nil && v.Ledger != nil {
		v.memberNames = slices.Sorted(maps.Keys(v.Ledger.Members))
	}
	return v.memberNames
}

// Owner of what the cluster has.
func (v *View) Owner() render.Owner { return render.OwnerOf(v.Cluster) }

// HasRing says that the cluster has a ring.
func (v *View) HasRing() bool { return v.Ledger.HasRing() }

// Begun says that tickets are issued, or were: from then on nodes cannot come and go freely.
func (v *View) Begun() bool { return v.Ledger != nil && (v.Ledger.Step != nil || v.HasRing()) }

// Settled says that the ring is formed and no formation is open: then it can grow.
func (v *View) Settled() bool {
	s := v.Ledger.Step
	return v.HasRing() && (s == nil || s.Kind != ledger.FormRing && s.Kind != ledger.AdoptRing)
}

// CanChange says that the ring is formed, that no step is open, and that the spec is accepted: then
// the next step may begin.
func (v *View) CanChange() bool { return v.HasRing() && !v.SpecRejected && v.Ledger.Step == nil }

// Describes is how the spec describes a node, or one that is to leave as long as it is a member;
// nil if it does neither.
func (v *View) Describes(name string) *render.Wanted {
	if v.byName == nil {
		v.byName = make(map[string]*render.Wanted, len(v.Wanted))
		for i := range v.Wanted {
			v.byName[v.Wanted[i].Name] = &v.Wanted[i]
		}
	}
	return v.byName[name]
}

// Abandoned says that a node with a ticket is not to join any more, and has not: the spec no longer
// has it, or its ticket is withdrawn. That has no way back: its node is abandoned to the end even
// if the spec has it again, and even if the record that said so was lost: the agent remembers.
func (v *View) Abandoned(name string) bool {
	n := v.Of(name)
	unwanted := !n.Wanted && !v.SpecRejected // a spec that is refused says nothing
	switch n.Record {
	case Missing:
		return unwanted // otherwise its record is recreated
	case Deleting:
		return false
	case Live:
	}
	return !n.Joined() && (unwanted || n.Membership == Withdrawn)
}

// Abandoning says that the open step withdraws the tickets of nodes that are abandoned.
func (v *View) Abandoning(name string) bool {
	s := v.Ledger.Step
	if s == nil || s.Kind != ledger.JoinNode && s.Kind != ledger.AddDatacenter || s.Stage != ledger.StageTickets {
		return false
	}
	return s.Has(name)
}

// Outside says that a node with a record has no part in the ring: no ticket that counts, and nobody
// says that it has joined.
func (v *View) Outside(name string) bool {
	n := v.Of(name)
	return !v.Ledger.Step.Has(name) && !n.Joined() && n.Membership != Ticketed
}

// Belongs says that a node is one of the ring's, or was one of those that should have formed it.
func (v *View) Belongs(name string) bool {
	if n := v.Nodes[name]; n != nil && n.Record != nil {
		return true
	}
	_, member := v.Ledger.HostID(name)
	return member || slices.Contains(v.Ledger.Excluded, name) || v.Ledger.Step.Has(name)
}

// Live is a node whose record is there and not being deleted; nil otherwise.
func (v *View) Live(name string) *facts.Node {
	if v.Of(name).Record != Live {
		return nil
	}
	return v.Nodes[name]
}

// IsDown says that no JVM of a node runs, nor can one start as its record is.
func (v *View) IsDown(n *facts.Node) bool {
	if v.Of(n.Name).Process != Absent {
		return false
	}
	agent := n.CurrentAgent()
	if agent == nil || n.Record == nil || n.Record.Spec.State != v1alpha1.StateStopped {
		return true
	}
	return agent.Phase == v1alpha1.PhaseStopped && agent.RecordGeneration == n.Record.Generation
}

// LeavesHost says that the pod of a node is deleted by force: its host is gone for certain, and
// neither its agent nor a member of the ring says otherwise.
func (v *View) LeavesHost(n *facts.Node) bool {
	return !n.Unplaced() && v.HostGone(n.Pod.Spec.NodeName) != "" && n.Agent == nil && !n.Asking && v.SeesAlive(n) == ""
}

// SeesAlive is a node whose ring has the host id of another node alive; empty if there is none.
func (v *View) SeesAlive(n *facts.Node) string {
	hostID, member := v.Ledger.HostID(n.Name)
	if !member && n.Record != nil {
		hostID = n.Record.Status.HostID
	}
	if hostID == "" {
		return ""
	}
	for _, name := range v.seeAlive()[hostID] {
		if name != n.Name {
			return name
		}
	}
	return ""
}

// Datacenter of the spec by its name; nil if the spec does not describe it.
func (v *View) Datacenter(name string) *v1alpha1.Datacenter {
	for i := range v.Cluster.Spec.Datacenters {
		if v.Cluster.Spec.Datacenters[i].Name == name {
			return &v.Cluster.Spec.Datacenters[i]
		}
	}
	return nil
}

// StopsDatacenter says that the spec wants a datacenter of the ring to be stopped alone.
func (v *View) StopsDatacenter(name string) bool {
	dc := v.Datacenter(name)
	return dc != nil && dc.Stopped && v.Ledger.IsFormed(name)
}

// DatacenterToStart is one that is stopped alone, and by the spec is not to be any more; empty if
// there is none.
func (v *View) DatacenterToStart() string {
	if !v.SpecRejected && v.Ledger != nil && !v.Cluster.Spec.Stopped {
		for _, s := range v.Ledger.StoppedDatacenters {
			if !v.StopsDatacenter(s.Name) {
				return s.Name
			}
		}
	}
	return ""
}

// DatacenterToStop is one that the spec wants to be stopped alone, and that is not; empty if there
// is none.
func (v *View) DatacenterToStop() string {
	if !v.SpecRejected && v.Ledger != nil && !v.Cluster.Spec.Stopped {
		for _, dc := range v.Ledger.Formed {
			if v.StopsDatacenter(dc) && v.Ledger.StoppedDatacenter(dc) == nil {
				return dc
			}
		}
	}
	return ""
}

// Withdraws says that a datacenter is to hold no keyspace, by the spec, or is no longer in it.
func (v *View) Withdraws(datacenter string) bool {
	dc := v.Datacenter(datacenter)
	return dc == nil || dc.Withdraw != nil
}

// DatacenterOf a node by its record, else by its pod, else by the spec; empty if none of them has
// it.
func (v *View) DatacenterOf(name string) string {
	switch n := v.Nodes[name]; {
	case n != nil && n.Record != nil:
		return n.Record.Spec.Datacenter
	case n != nil && n.Pod != nil:
		return n.Pod.Labels[v1alpha1.LabelDatacenter]
	}
	if w := v.Describes(name); w != nil {
		return w.Datacenter
	}
	return ""
}

// Datacenters are those that are described, in the order of the spec, and those that exist beside
// them, by name.
func (v *View) Datacenters() []string {
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if !v.SpecRejected {
		for i := range v.Wanted {
			add(v.Wanted[i].Datacenter)
		}
	}
	for _, n := range v.Records() {
		add(n.Record.Spec.Datacenter)
	}
	return names
}

// FirstOfRack says that one of Wanted is the first of its rack: the others mostly differ in nothing
// but their names.
func (v *View) FirstOfRack(i int) bool {
	return i == 0 || v.Wanted[i].Datacenter != v.Wanted[i-1].Datacenter || v.Wanted[i].Rack != v.Wanted[i-1].Rack
}

// WantedNames are the nodes that the spec describes, in its order.
func (v *View) WantedNames() []string {
	out := make([]string, len(v.Wanted))
	for i := range v.Wanted {
		out[i] = v.Wanted[i].Name
	}
	return out
}

// WantedDatacenters are those that the spec describes nodes of, by name.
func (v *View) WantedDatacenters() []string {
	var out []string
	for _, w := range v.Wanted {
		out = append(out, w.Datacenter)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// IsOpen says that client traffic was opened in a datacenter, whatever happens in the ring now.
func (v *View) IsOpen(datacenter string) bool {
	s := v.Ledger.Step
	switch {
	case v.Ledger.Traffic(datacenter) == v1alpha1.TrafficClosed:
		return false
	case s == nil, s.Stage == ledger.StageOpen: // in that stage client traffic opens, and some of it has
		return true
	case s.Kind == ledger.StopRing, s.Kind == ledger.StopDatacenter && slices.Contains(s.Datacenters, datacenter):
		return false
	case s.Kind == ledger.AddDatacenter:
		return !v.Ledger.Adds(datacenter)
	default:
		return v.Settled()
	}
}

// IsPostponed says that a kind of maintenance is left for later on a node: for its time, and then
// until all nodes that it needs are up.
func (v *View) IsPostponed(kind ledger.Kind, node string, needs ...string) bool {
	return v.Ledger.IsPostponed(kind, node, v.Now) ||
		slices.Contains(v.Ledger.PostponedOn(kind), node) && len(v.UpAmong(needs)) < len(needs)
}

// Address of a node's present pod; empty while it has none or the pod is being deleted.
func Address(n *facts.Node) string {
	if n == nil || n.Pod == nil || n.Pod.DeletionTimestamp != nil {
		return ""
	}
	return n.Pod.Status.PodIP
}

// HashesOf a node's record.
func (v *View) HashesOf(n *facts.Node) *facts.RecordHashes { return v.compared.HashesOf(n) }

// SameAs says that a node's record is what the spec describes.
func (v *View) SameAs(n *facts.Node, w render.Wanted) bool { return v.compared.Same(n, w) }

// WantedHashes are the hashes of the record of a node as it is to be.
func (v *View) WantedHashes(w render.Wanted) facts.RecordHashes { return v.compared.Wanted(w) }

// Described tells apart what the spec describes the nodes as, whatever release of Helenus reads it.
func (v *View) Described() string {
	var out strings.Builder
	for i := range v.Wanted {
		if w := v.Wanted[i]; v.FirstOfRack(i) {
			w.Configuration.Revision, w.Pod.Revision = 0, 0
			if w.Pod.ImageDefaulted {
				w.Pod.Image = ""
			}
			h := v.compared.Wanted(w)
			out.WriteString(h.Configuration + h.Pod)
		}
	}
	sum := sha256.Sum256([]byte(out.String()))
	return hex.EncodeToString(sum[:8])
}

// MadeForAnother says that the pod of a node was made for another spec than its record has, or was
// asked to become something else since.
func (v *View) MadeForAnother(n *facts.Node) bool {
	return n.PodTemplate() != v.HashesOf(n).PodTemplate || render.HalfResized(n.Record, n.Pod)
}

// authenticationOf a node is the one that the ring goes towards, if it is a member: others join as
// all are.
func (v *View) authenticationOf(node string) v1alpha1.AuthenticationMode {
	if v.Ledger != nil && v.Ledger.Members[node] != "" {
		return v.NextAuthentication()
	}
	return v.authentication
}

// Authentication that all nodes have, or that the ring is to be made with; empty in a ring that was
// made by an earlier release of Helenus. Nothing that a pass decides changes it.
func (v *View) Authentication() v1alpha1.AuthenticationMode { return v.authentication }

// AsksForPassword says that nobody can log in to any node of the ring without one.
func (v *View) AsksForPassword() bool { return v.authentication == v1alpha1.AuthenticationPassword }

// HasRoles says that the ring asks for passwords, or some of its nodes do, or are to.
func (v *View) HasRoles() bool { return v.AsksForPassword() || v.HasRing() && v.AsksForPasswords() }

// ResetsSuperuser says that a task is to reset the superuser.
func (v *View) ResetsSuperuser() bool {
	return slices.ContainsFunc(v.Tasks, func(t *v1alpha1.CassandraTask) bool {
		return t.Spec.Type == v1alpha1.TaskResetSuperuser && t.DeletionTimestamp == nil && !t.Status.Finished()
	})
}

// Encryption that nodes are to have; nil in a ring that was made by an earlier release of Helenus.
// Nothing that a pass decides changes it: the next one goes on with the next stage.
func (v *View) Encryption() *v1alpha1.NodeEncryption { return v.encryption }

// AppliedSuperuser is the name of the Secret that agents read the superuser from.
func (v *View) AppliedSuperuser() string { return v1alpha1.AppliedSuperuserName(v.Cluster.Name) }

// NetworkPolicy says whether Helenus keeps the network policy of the ring. Nothing that a pass
// decides changes it.
func (v *View) NetworkPolicy() v1alpha1.NetworkPolicyMode { return v.networkPolicy }

// MadeWith is how the ring is made that is opened to form, or that adopts disks.
func (v *View) MadeWith() *ledger.MadeWith {
	out := &ledger.MadeWith{Authentication: v.authentication, NetworkPolicy: v.networkPolicy,
		Encryption: v.encryption, Defaults: v.Defaults.Node}
	if v.AsksForPassword() {
		out.SuperuserSecret = v.SuperuserSecret()
	}
	return out
}

// Adopts is the uid of the earlier cluster whose disks are to be used; empty if there is none.
func (v *View) Adopts() types.UID { return v.Cluster.Spec.AdoptedUID() }

// MayUse says that a claim was made for this cluster or for the one it adopts.
func (v *View) MayUse(claim *corev1.PersistentVolumeClaim) bool {
	if claim == nil || claim.DeletionTimestamp != nil {
		return false
	}
	of := claim.Labels[v1alpha1.LabelClusterUID]
	return of == string(v.Cluster.UID) || (of != "" && of == string(v.Adopts()))
}

// ClaimsOf pins the claims of this cluster, or of the one it adopts, that a new record finds.
func (v *View) ClaimsOf(w render.Wanted) []v1alpha1.ClaimReference {
	n := v.Nodes[w.Name]
	if n == nil {
		return nil
	}
	var out []v1alpha1.ClaimReference
	for _, volume := range render.Volumes(w.Pod) {
		if c := n.Claims[volume.Name]; c != nil && v.MayUse(c.Claim) {
			out = append(out, render.Reference(volume.Name, c.Claim))
		}
	}
	return out
}

// OwnsClaim says that a claim is this cluster's: it carries its uid, or a record pins its uid.
func (v *View) OwnsClaim(n *facts.Node, claim *corev1.PersistentVolumeClaim) bool {
	if claim.Labels[v1alpha1.LabelClusterUID] == string(v.Cluster.UID) {
		return true
	}
	return n.Record != nil && slices.ContainsFunc(n.Record.Spec.Claims,
		func(c v1alpha1.ClaimReference) bool { return c.UID == claim.UID })
}
