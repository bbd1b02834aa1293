package facts

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/repair"
)

// Snapshot is everything known about one cluster at one moment. It is gathered once per pass and
// never changed afterwards. What could not be reached is a fact, too: a nil Agent with a reason.
type Snapshot struct {
	// Cluster is the object of the user, never nil, with Defaults under its nodes.
	Cluster  *v1alpha1.CassandraCluster
	Defaults Defaults
	// Install is what this operator was installed with.
	Install Install

	// Nodes of the cluster by name: everything that has a record, a pod or a claim of it, live or
	// retained.
	Nodes map[string]*Node
	// Shared objects of the cluster as they are, by kind and name.
	Shared Shared
	// Edited are the names of the Secrets with certificates whose content somebody changed.
	Edited map[string]bool
	// Trust is what Secrets with certificates of Cassandra hold, by their names. Where the user has
	// certificates of his own, that of the authority is what those say.
	Trust map[string]Trust
	// Given are the certificates that Helenus does not sign, by what cert-manager calls them; one
	// for clients of all nodes has no name. NoIssuer says why cert-manager cannot sign any for a
	// use; empty if it can.
	Given    map[string]Given
	NoIssuer map[v1alpha1.CertificateUse]string
	// Passwords of a ring that asks for them, or is to.
	Passwords Passwords
	// Ledger as it is; nil if there is none.
	Ledger *ledger.Ledger
	// LedgerProblem says why a ledger that is there could not be read. Empty if it could.
	LedgerProblem string
	// Tasks that name the cluster, the oldest first, and of one age by uid. Each is done in this
	// order.
	Tasks []*v1alpha1.CassandraTask
	// Restores and Backups that name the cluster, in the same order, and the stores that they may
	// name.
	Restores []*v1alpha1.CassandraRestore
	Backups  []*v1alpha1.CassandraBackup
	Stores   map[string]*v1alpha1.BackupStoreSpec
	// CommitLog is where the commit logs of members are to be kept; nil for nowhere.
	CommitLog *v1alpha1.CommitLogArchive
	// Hosts are the Kubernetes nodes that pods of the cluster are on, and those where the volumes
	// of its nodes without a place can be used, by name. One that is missing is gone.
	Hosts map[string]*corev1.Node
	// Expandable says of the storage classes of claims that are to grow whether their volumes can,
	// by name. One that is missing is not known.
	Expandable map[string]bool
	// Repairs is what is proven to be repaired; nil if nothing is known. RepairZone is the time
	// zone of spec.repair.window, nil for UTC; NoRepairZone says that there is none of the name.
	Repairs      *repair.History
	RepairZone   *time.Location
	NoRepairZone bool
	// CQLReached says whether the operator reaches CQL of a node; nil if that is not known, or not
	// forbidden to it.
	CQLReached *bool
	// Backup that the ring is to be made from; nil if it is made, or is to be made from none.
	Backup *Backup
	// Predecessor are objects of an earlier cluster of the same name and another uid, which must go
	// before this one begins.
	Predecessor []ObjectName
	// Foreign objects that have one of our names and are not ours.
	Foreign []ObjectName
}

// Install is what an operator was installed with.
type Install struct {
	// Version of Helenus.
	Version string
	// ImageRepository of Cassandra; a cluster without an image uses <repository>:<version>.
	ImageRepository string
	// AgentImage of this release.
	AgentImage string
	// Namespace that the operator's pod is in; empty if it is in none.
	Namespace string
}

// Backup is what a store says of one.
type Backup struct {
	// Store it is in.
	Store v1alpha1.BackupStoreSpec
	// Description of it; nil if it could not be read, and Problem says why. Missing says that the
	// store has none, or that it cannot be understood.
	Description *format.Backup
	Problem     string
	Missing     bool
}

// ObjectName names an object for people.
type ObjectName struct {
	Kind string
	Name string
}

func (o ObjectName) String() string { return o.Kind + "/" + o.Name }

// Node is everything known about one node.
type Node struct {
	Name string
	// Record is nil for a pod or claim that is left without one.
	Record *v1alpha1.CassandraNode
	// Hashes of the record, if they are known: they can be worked out from it.
	Hashes *RecordHashes
	// Pod that has the node's name; nil if there is none.
	Pod *corev1.Pod
	// Claims of the node by volume name: those that its record pins, else those of the node's
	// names.
	Claims map[string]*Claim
	// Agent is the answer of the agent in the present pod; nil if there was none, with the reason
	// in Unreachable.
	Agent       *Agent
	Unreachable string
	// Asking says that this operator has asked it for the first time just now: that there is no
	// answer yet means nothing.
	Asking bool
}

// Claim is a persistent volume claim with its volume.
type Claim struct {
	Claim *corev1.PersistentVolumeClaim
	// Volume is nil if the claim is not bound or the volume is gone.
	Volume *corev1.PersistentVolume
}

// Bound says that the claim has a volume, or had one, or is about to get one that exists.
func (c *Claim) Bound() bool {
	return c != nil && c.Claim != nil && (c.Claim.Spec.VolumeName != "" || c.Claim.Status.Phase == corev1.ClaimBound ||
		c.Claim.Status.Phase == corev1.ClaimLost)
}

// Growing says that the claim asks for more than its volume has yet.
func (c *Claim) Growing() bool {
	if c == nil || c.Claim == nil {
		return false
	}
	has, known := c.Claim.Status.Capacity[corev1.ResourceStorage]
	return known && has.Cmp(c.Claim.Spec.Resources.Requests[corev1.ResourceStorage]) < 0
}

// VolumeGrows is a claim of the node that asks for more than its volume has yet; empty if none
// does.
func (n *Node) VolumeGrows() string {
	for _, volume := range slices.Sorted(maps.Keys(n.Claims)) {
		if c := n.Claims[volume]; c.Growing() {
			return c.Claim.Name
		}
	}
	return ""
}

// Unbound says that the claim is there and never had a volume: nothing is on it.
func (c *Claim) Unbound() bool { return c != nil && c.Claim != nil && !c.Bound() }

// Shared are the objects that a cluster has beside its nodes, by name. Only those that carry the
// label of the cluster's uid are here.
type Shared struct {
	Services        map[string]*corev1.Service
	Budgets         map[string]*policyv1.PodDisruptionBudget
	ServiceAccounts map[string]*corev1.ServiceAccount
	Roles           map[string]*rbacv1.Role
	RoleBindings    map[string]*rbacv1.RoleBinding
	ConfigMaps      map[string]*corev1.ConfigMap
	Secrets         map[string]*corev1.Secret
	NetworkPolicies map[string]*networkingv1.NetworkPolicy
}

// Names of all nodes, sorted.
func (s *Snapshot) Names() []string { return slices.Sorted(maps.Keys(s.Nodes)) }

// Named is a text with the names of members in place of their host ids.
func (s *Snapshot) Named(text string) string {
	for name, hostID := range s.Ledger.Members {
		text = strings.ReplaceAll(text, hostID, name)
	}
	return text
}

// Records are the nodes that have a record, sorted by name.
func (s *Snapshot) Records() []*Node {
	var out []*Node
	for _, name := range s.Names() {
		if n := s.Nodes[name]; n.Record != nil {
			out = append(out, n)
		}
	}
	return out
}

// CurrentAgent is the agent's answer if it comes from the present pod of the node, and that pod is
// not on its way out.
func (n *Node) CurrentAgent() *Agent {
	if n == nil || n.Agent == nil || n.Pod == nil || n.Agent.PodUID != n.Pod.UID {
		return nil
	}
	return n.Agent
}

// StatusIsCurrent says that the record's status was written by the agent of the present pod.
func (n *Node) StatusIsCurrent() bool {
	return n != nil && n.Record != nil && n.Pod != nil && n.Record.Status.PodUID == n.Pod.UID
}

// Task by its uid; nil if there is none.
func (s *Snapshot) Task(uid string) *v1alpha1.CassandraTask {
	for _, t := range s.Tasks {
		if string(t.UID) == uid {
			return t
		}
	}
	return nil
}

// Owned says that the object carries the controlling owner reference to the given uid.
func Owned(object metav1.Object, uid string) bool {
	ref := metav1.GetControllerOfNoCopy(object)
	return ref != nil && string(ref.UID) == uid
}

// Has says whether an object of this kind and name is among the shared ones.
func (s Shared) Has(kind, name string) bool {
	has := map[string]bool{
		"Service":             s.Services[name] != nil,
		"PodDisruptionBudget": s.Budgets[name] != nil,
		"ServiceAccount":      s.ServiceAccounts[name] != nil,
		"Role":                s.Roles[name] != nil,
		"RoleBinding":         s.RoleBindings[name] != nil,
		"ConfigMap":           s.ConfigMaps[name] != nil,
		"Secret":              s.Secrets[name] != nil,
		"NetworkPolicy":       s.NetworkPolicies[name] != nil,
	}
	return has[kind]
}
