package assess

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/render"
)

// Drift is how a node that exists compares with what the spec describes, and what it may take over
// now.
type Drift string

// The drifts.
const (
	// Same: its record is what the spec describes.
	Same Drift = "Same"
	// Takes: it takes over what the spec says now.
	Takes Drift = "Takes"
	// Grows: its volumes become larger now, while it runs. What else differs is looked at after
	// that.
	Grows Drift = "Grows"
	// InTurn: a roll-out brings it to what the spec says when it is the node's turn. Until then it
	// stays as its record has it, whatever happens to it.
	InTurn Drift = "InTurn"
	// Keeps: it stays as its record has it, and the spec is refused.
	Keeps Drift = "Keeps"
)

// Drift of a node whose record is live, and what the spec wants of it: what does not come from the
// user stays as the record has it.
//
// A spec under which nodes cannot start must be correctable, or they would wait for ever. So a node
// that has not joined takes over the spec in all but what its ticket and its disk rest on. Once a
// node has joined, only those do that do not start; the others wait for their turn. A member that
// does not start does so only if it never was NORMAL with what its record says: what has worked is
// not what keeps it from starting. A node without a ticket takes over everything, and of its claims
// those that have no volume.
func (v *View) Drift(n *facts.Node, w render.Wanted) (Drift, render.Wanted) {
	if !v.Begun() && !v.LedgerLost { // then the record follows the spec in everything
		if v.SameAs(n, w) {
			return Same, w
		}
		return Takes, w
	}
	w = render.Pinned(v.Cluster, w, n.Record)
	if v.Ledger.Members[n.Name] != "" { // a roll-out alone changes it, and sees to the clients
		w.Configuration.Authentication = n.Record.Spec.Configuration.Authentication
	}
	switch {
	case v.SameAs(n, w):
		return Same, w
	case v.VolumesGrow(n, w):
		return Grows, w
	case v.mayTake(n, w):
		return Takes, w
	case v.fixed(n, w) || !v.Of(n.Name).Started() && v.BoundClaim(n, w) != "",
		// it would join a ring of another release
		v.Of(n.Name).Membership != Withdrawn && !v.Of(n.Name).Joined() &&
			n.Record.Spec.Configuration.Version != w.Configuration.Version:
		return Keeps, w
	}
	return InTurn, w
}

// fixed says that the spec changes what a node can never be brought to: what tickets and disks rest
// on.
func (v *View) fixed(n *facts.Node, w render.Wanted) bool {
	pair := [2]facts.Hashes{v.HashesOf(n).Hashes, v.WantedHashes(w).Hashes}
	out, known := v.fixedOf[pair] // the nodes of a rack mostly have the same
	if !known {
		have, want := n.Record.Spec.Pod.Storage, w.Pod.Storage
		out = otherRing(n, w) || !equality.Semantic.DeepEqual(have.Claims, want.Claims) ||
			(have.Ephemeral == nil) != (want.Ephemeral == nil)
		v.fixedOf[pair] = out
	}
	return out
}

// otherRing says that the spec changes what a node is to the others.
func otherRing(n *facts.Node, w render.Wanted) bool {
	have, want := &n.Record.Spec.Configuration, &w.Configuration
	return have.ClusterName != want.ClusterName || have.DatacenterName != want.DatacenterName ||
		have.RackName != want.RackName || have.NumTokens != want.NumTokens
}

func (v *View) mayTake(n *facts.Node, w render.Wanted) bool {
	have, want, is := n.Record.Spec.Configuration, w.Configuration, v.Of(n.Name)
	switch {
	case v.alreadyIs(n, w) && !v.fixed(n, w) && have.Version == want.Version:
		return true
	case !is.Started() && !is.Joined(): // nor does it before the ring has this release
		return v.BoundClaim(n, w) == ""
	case is.Joined() && (!is.Failing() || provenWith(n.Record)):
		return false
	case v.HoldsData(n) && render.PodHash(n.Record.Spec.Pod) != render.PodHash(w.Pod):
		return false // a new pod takes its turn
	case v.fixed(n, w):
		return false
	case v.Ledger.Step != nil && v.anyJoined() && !is.NotStarting:
		return false
	}
	return have.Version == want.Version || v.allUntouched()
}

// BoundClaim is a claim of a node that the spec does not describe as it is, and that is bound to a
// volume; empty if there is none. Others are recreated.
func (v *View) BoundClaim(n *facts.Node, w render.Wanted) string {
	described := map[string]bool{}
	for _, volume := range render.Volumes(w.Pod) {
		described[volume.Name] = true
		if c := n.Claims[volume.Name]; c.Bound() && !SameVolume(c.Claim, render.Claim(v.Owner(), n.Record, volume)) {
			return c.Claim.Name
		}
	}
	for _, volume := range slices.Sorted(maps.Keys(n.Claims)) {
		if c := n.Claims[volume]; !described[volume] && c.Bound() {
			return c.Claim.Name
		}
	}
	return ""
}

// SameVolume compares what is asked for. A class that the spec does not name is the default one of
// the Kubernetes cluster, which the API server fills in.
func SameVolume(have, want *corev1.PersistentVolumeClaim) bool {
	a, b := have.Spec.Resources.Requests[corev1.ResourceStorage], want.Spec.Resources.Requests[corev1.ResourceStorage]
	if a.Cmp(b) != 0 {
		return false
	}
	if !slices.Equal(have.Spec.AccessModes, want.Spec.AccessModes) ||
		!equality.Semantic.DeepEqual(have.Spec.Selector, want.Spec.Selector) ||
		SourceInWords(have.Spec.DataSource) != SourceInWords(want.Spec.DataSource) {
		return false
	}
	if class := want.Spec.StorageClassName; class != nil {
		return have.Spec.StorageClassName != nil && *have.Spec.StorageClassName == *class
	}
	_, named := have.Annotations[v1alpha1.AnnotationStorageClass]
	return !named
}

// SourceInWords names what a volume is filled from; empty for nothing. The group is the API
// server's to fill in.
func SourceInWords(source *corev1.TypedLocalObjectReference) string {
	if source == nil {
		return ""
	}
	return source.Kind + " " + source.Name
}

// alreadyIs says that a node runs as the spec describes it although its record says otherwise: it
// was starting when a correction was written, which was taken back when it had joined.
func (v *View) alreadyIs(n *facts.Node, w render.Wanted) bool {
	if n.Pod == nil || n.PodTemplate() != v.WantedHashes(w).PodTemplate ||
		!equality.Semantic.DeepEqual(n.Record.Spec.Pod.Metadata, w.Pod.Metadata) {
		return false
	}
	running := n.Record.Status.Configuration
	hash, err := config.Hash(&w.Configuration)
	return err == nil && n.StatusIsCurrent() && running != nil && running.Hash == hash &&
		running.Encryption.OrNotEncrypted() == w.Configuration.Encryption.OrNotEncrypted()
}

// provenWith says that a node was NORMAL with what its record says.
func provenWith(record *v1alpha1.CassandraNode) bool {
	was := record.Status.Proven
	if was == nil || was.PodTemplate != render.PodHash(record.Spec.Pod) {
		return false
	}
	hash, err := config.Hash(&record.Spec.Configuration)
	return err == nil && was.Configuration == hash
}

func (v *View) anyJoined() bool {
	return slices.ContainsFunc(v.Records(), func(n *facts.Node) bool { return v.Of(n.Name).Joined() })
}

// allUntouched says that Cassandra has written on no disk of the cluster: then even its release is
// still open.
func (v *View) allUntouched() bool {
	for _, n := range v.Records() {
		disk := n.Record.Status.Disk
		if agent := n.CurrentAgent(); agent != nil {
			disk = agent.Disk
		}
		if v.Of(n.Name).Joined() || disk != v1alpha1.DiskEmpty {
			return false
		}
	}
	return true
}
