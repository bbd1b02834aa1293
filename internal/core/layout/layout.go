package layout

// Containers of a Cassandra pod.
const (
	// AgentContainer is the native sidecar.
	AgentContainer = "agent"
	// CassandraContainer runs helenus-init, and under it the JVM.
	CassandraContainer = "cassandra"
)

// Paths that both containers have.
const (
	// SharedDir is an emptyDir of both containers.
	SharedDir = "/helenus"
	// InitBinary is where the agent puts helenus-init for the Cassandra container.
	InitBinary = SharedDir + "/bin/helenus-init"
	// BaseDir holds helenus-init's copies of the image's configuration, by incarnation.
	BaseDir = SharedDir + "/base"
	// RenderedDir is the configuration directory that Cassandra is started on.
	RenderedDir = SharedDir + "/conf"
	// LibraryDir holds the Java agents that the JVM loads.
	LibraryDir = SharedDir + "/lib"
	// DataDir is the data volume.
	DataDir = "/var/lib/cassandra"
	// CommitlogDir is the mount point of the commit log's own volume, where it has one. Without one
	// the commit log is in DataDir.
	CommitlogDir = "/var/lib/cassandra-commitlog"
	// LogDir is an emptyDir of both containers. Cassandra writes a bounded system.log there beside
	// its output, from which the agent takes the words for what ended the JVM.
	LogDir = "/var/log/cassandra"
)

// Paths of the agent alone.
const (
	// CertificateDir is the Secret of the node's certificate: tls.crt, tls.key and ca.crt.
	CertificateDir = "/etc/helenus/tls"
	// CassandraCertificateDir has a directory for each use of Cassandra's certificates, with the
	// same three files.
	CassandraCertificateDir = "/etc/helenus/cassandra-tls"
	// ConfigFilesDir is the ConfigMap of node.configFiles, where there is one.
	ConfigFilesDir = "/etc/helenus/config-files"
	// PrivateDir is an emptyDir of the agent alone.
	PrivateDir = "/var/run/helenus-agent"
	// TokenDir is the projected service account token with the API server's authority.
	TokenDir = "/var/run/secrets/kubernetes.io/serviceaccount"
	// InstallDir is where the agent's image has what it hands to the Cassandra container.
	InstallDir = "/opt/helenus"
)

// Ports of the pod.
const (
	// NativePort is CQL.
	NativePort = 9042
	// StoragePort is internode traffic, TLSStoragePort the same with TLS on nodes that have both.
	StoragePort    = 7000
	TLSStoragePort = 7001
	// FactsPort is the agent's HTTPS port, for the operator and for other agents of the cluster.
	FactsPort = 7780
	// HealthPort is the agent's HTTP port for kubelet's probes.
	HealthPort = 7781
	// MetricsPort is the agent's HTTP port for metrics: its own, and those of the JVM.
	MetricsPort = 7782
	// JVMMetricsPort is where the JVM answers with its metrics, bound to loopback.
	JVMMetricsPort = 7783
	// JolokiaPort is bound to loopback.
	JolokiaPort = 7777
)

// Loopback is what the Java agents in the JVM listen on.
const Loopback = "127.0.0.1"

// Paths of the agent's ports for probes and metrics.
const (
	StartupPath = "/startup"
	LivePath    = "/live"
	ReadyPath   = "/ready"
	MetricsPath = "/metrics"
)

// Environment variables of the agent.
const (
	EnvPodName      = "POD_NAME"
	EnvPodNamespace = "POD_NAMESPACE"
	EnvPodUID       = "POD_UID"
	EnvPodIP        = "POD_IP"
	// EnvPodTemplate is the hash of what the pod was made from.
	EnvPodTemplate = "HELENUS_POD_TEMPLATE"
	EnvHost        = "NODE_NAME"
	EnvClusterName = "HELENUS_CLUSTER"
	EnvClusterUID  = "HELENUS_CLUSTER_UID"
	// EnvVolumes are the volumes of the node, data first: name=path, separated by commas.
	EnvVolumes = "HELENUS_VOLUMES"
	// EnvMemoryLimit is the memory limit of the Cassandra container in bytes.
	EnvMemoryLimit = "CASSANDRA_MEMORY_LIMIT"
	// EnvGracePeriod is the pod's terminationGracePeriodSeconds.
	EnvGracePeriod = "TERMINATION_GRACE_PERIOD_SECONDS"
)

// CassandraUser is the user and group id of the official image.
const CassandraUser = 999

// SeedsKey is the key of the ConfigMap of seeds: addresses separated by commas.
const SeedsKey = "seeds"

// ReplacedKey is the key of the host ids, separated by commas, that were replaced and must never
// start again. It is in the ConfigMap of seeds, which every agent follows.
const ReplacedKey = "replaced"
