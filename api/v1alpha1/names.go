package v1alpha1

import "strconv"

// Labels of the objects that Helenus makes.
const (
	// LabelCluster is the name of the CassandraCluster.
	LabelCluster = Group + "/cluster"
	// LabelClusterUID is the uid of the CassandraCluster. Objects are selected by it, never by the
	// name alone.
	LabelClusterUID = Group + "/cluster-uid"
	// LabelDatacenter is the name of the datacenter.
	LabelDatacenter = Group + "/datacenter"
	// LabelRack is the name of the rack.
	LabelRack = Group + "/rack"
	// LabelNode is the name of the CassandraNode.
	LabelNode = Group + "/node"
	// LabelVolume is the name of the volume that a claim is for: data, commitlog or that of an
	// additional one.
	LabelVolume = Group + "/volume"
	// LabelComponent says what an object is for; see the Component constants.
	LabelComponent = Group + "/component"
	// LabelSchedule is the name of the schedule that has made a task or a backup.
	LabelSchedule = Group + "/schedule"
	// LabelScheduleUID is the uid of the schedule that has made a backup. The schedule deletes
	// those alone that have it.
	LabelScheduleUID = Group + "/schedule-uid"
	// LabelRestoreUID is the uid of the CassandraRestore for which the operator has made a cluster
	// or a backup. It deletes those alone that have it.
	LabelRestoreUID = Group + "/restore-uid"

	// LabelManagedBy and the next are the recommended labels of Kubernetes.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	LabelName      = "app.kubernetes.io/name"
	LabelInstance  = "app.kubernetes.io/instance"
)

// Values of labels.
const (
	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "helenus"
	// ComponentCassandra is a Cassandra node's pod, and what belongs to it.
	ComponentCassandra = "cassandra"
	// ComponentAgent is what the agents need: service account, role, certificates.
	ComponentAgent = "agent"
	// ComponentOperator is the operator's own pod.
	ComponentOperator = "operator"
	// ComponentLedger is the ledger of a cluster.
	ComponentLedger = "ledger"
	// ComponentTask is a task that a schedule has made.
	ComponentTask = "task"
	// ComponentBackup is a backup that a schedule has made.
	ComponentBackup = "backup"
)

// Annotations of the objects that Helenus makes.
const (
	// AnnotationTemplateHash is the hash of what a pod was made from that can only change with a
	// new pod.
	AnnotationTemplateHash = Group + "/template-hash"
	// AnnotationResize is the hash of what a pod is to become by a resize in place, written before
	// that is asked for. The word refused follows where the API server has refused it.
	AnnotationResize = Group + "/resize"
	// AnnotationReplacedAgent is the image of the agent that was last asked for in a pod that runs,
	// and the ID of the container that it had then.
	AnnotationReplacedAgent = Group + "/replaced-agent"
	// AnnotationRenewAfter is when the certificate in a Secret is to be renewed, in RFC 3339.
	AnnotationRenewAfter = Group + "/renew-after"
	// AnnotationSince is since when the ConfigMap with the authority of clients, or the Secret of a
	// node's certificate between nodes, has what it has, in RFC 3339.
	AnnotationSince = "helenus.io/since"
	// AnnotationAddress is the address of the pod that the certificate in a Secret names.
	AnnotationAddress = Group + "/address"
	// AnnotationSource is the Secret of which the certificate in a Secret is a copy, and the hash
	// of what it had.
	AnnotationSource = Group + "/source"
	// AnnotationContent is the hash of what Helenus has put into a Secret.
	AnnotationContent = Group + "/content"
	// AnnotationSecretVersion is the resourceVersion of the Secret whose content was copied.
	AnnotationSecretVersion = Group + "/secret-version"
	// AnnotationAppliedAt is when a copied password was proven on every node, in RFC 3339.
	AnnotationAppliedAt = Group + "/applied-at"
	// AnnotationAdded lists the labels and annotations that the spec had Helenus add to an object,
	// so that they go with the spec's word.
	AnnotationAdded = Group + "/added"
	// AnnotationStorageClass of a claim is the class that the spec named. A claim for which it
	// named none has the default class by now, and not this annotation.
	AnnotationStorageClass = Group + "/storage-class"
	// AnnotationPodFailures of a CassandraNode counts the failures in a row of its pods, so that
	// the next is made the later. It goes when one is ready.
	AnnotationPodFailures = Group + "/pod-failures"
)

// Finalizers.
const (
	// FinalizerCluster keeps a CassandraCluster until its nodes are stopped in order.
	FinalizerCluster = Group + "/cluster"
	// FinalizerNode keeps a CassandraNode until its pod is gone or handed over.
	FinalizerNode = Group + "/node"
	// FinalizerBackup keeps a CassandraBackup with deletionPolicy Delete until it is deleted in its
	// store.
	FinalizerBackup = Group + "/backup"
)

// Field managers of server-side apply.
const (
	FieldManagerOperator = "helenus"
	FieldManagerAgent    = "helenus-agent"
)

// Names of the two volumes that every node may have.
const (
	VolumeData      = "data"
	VolumeCommitlog = "commitlog"
)

// NodeName is the name of a CassandraNode and of its pod: <cluster>-<datacenter>-<rack>-<ordinal>,
// as a StatefulSet per rack would give it. It is unambiguous because names of datacenters and racks
// have no hyphen.
func NodeName(cluster, datacenter, rack string, ordinal int32) string {
	return cluster + "-" + datacenter + "-" + rack + "-" + strconv.Itoa(int(ordinal))
}

// ClaimName is the name of a node's first claim for a volume: <volume>-<node>.
func ClaimName(volume, node string) string { return volume + "-" + node }

// NodesServiceName is the headless service of all pods of a cluster, ready or not. It gives each
// pod its DNS name.
func NodesServiceName(cluster string) string { return cluster }

// ClientServiceName is the service of the ready pods of one datacenter, for clients.
func ClientServiceName(cluster, datacenter string) string { return cluster + "-" + datacenter }

// DisruptionBudgetName is the PodDisruptionBudget of one datacenter.
func DisruptionBudgetName(cluster, datacenter string) string { return cluster + "-" + datacenter }

// NetworkPolicyName is the NetworkPolicy of all pods of a cluster.
func NetworkPolicyName(cluster string) string { return cluster }

// DefaultsName is the ConfigMap of users with what the nodes of new rings of its namespace are
// like.
const DefaultsName = "helenus-defaults"

// PodMonitorName is the PodMonitor of all pods of a cluster.
func PodMonitorName(cluster string) string { return cluster }

// AgentSuffix ends the name of every service account of agents. The admission policies know agents
// by it, so it is one that nobody else uses by chance.
const AgentSuffix = "-helenus-agent"

// AgentServiceAccountName is the service account of all agents of a cluster, and the name of its
// role and role binding.
func AgentServiceAccountName(cluster string) string { return cluster + AgentSuffix }

// LedgerName is the ConfigMap in which the operator keeps the open step of a cluster.
func LedgerName(cluster string) string { return cluster + "-ledger" }

// RepairsName is the ConfigMap in which the operator keeps when ranges of tables were repaired.
func RepairsName(cluster string) string { return cluster + "-repairs" }

// SeedsName is the ConfigMap with the addresses that the nodes of a cluster use as seeds.
func SeedsName(cluster string) string { return cluster + "-seeds" }

// AuthorityName is the Secret with a certificate authority of a cluster. The ConfigMap of that name
// has the certificate of the authority of clients.
func AuthorityName(cluster string, use CertificateUse) string {
	return cluster + "-" + string(use) + "-ca"
}

// IssuedName is the Certificate of a node for a use, and the Secret in which cert-manager keeps
// what it signs.
func IssuedName(node string, use CertificateUse) string { return node + "-" + string(use) + "-issued" }

// CertificateName is the Secret with a certificate of a node.
func CertificateName(node string, use CertificateUse) string {
	return node + "-" + string(use) + "-tls"
}

// AppliedSuperuserName is the Secret with the user name and password of the superuser as Helenus
// has applied them, or is about to.
func AppliedSuperuserName(cluster string) string { return cluster + "-superuser-applied" }

// RolesName is the Secret with the passwords of the roles that Helenus makes in a ring.
func RolesName(cluster string) string { return cluster + "-roles" }

// SuperuserName is the Secret with the user name and password of the superuser of a ring, unless
// the spec names another.
func SuperuserName(cluster string) string { return cluster + "-superuser" }
