package agentapi

// Ports of a pod.
const (
	// PortStorage is Cassandra's port between nodes (storage_port).
	PortStorage = 7000
	// PortCQL is the native transport.
	PortCQL = 9042
	// PortFacts is where the agent answers operator and peers: HTTPS with client certificates.
	PortFacts = 7780
	// PortHealth is where the agent answers the kubelet and Prometheus: plain HTTP.
	PortHealth = 7781
	// PortMetrics is where the JMX exporter in the JVM answers Prometheus: plain HTTP.
	PortMetrics = 7782
	// PortJolokia is on the loopback address of the pod only.
	PortJolokia = 7777
	// PortJMX is that of nodetool, on the loopback address of the pod only, as the image has it.
	PortJMX = 7199
)

// Paths of the health server.
const (
	// PathStartup answers 200 once helenus-init lies in the shared volume: from then on the Cassandra container can start.
	PathStartup = "/startup"
	// PathLive answers 200 while the agent itself works. It says nothing about Cassandra.
	PathLive = "/live"
	// PathReady answers 200 while the node is NORMAL, gossips and is open to clients.
	PathReady = "/ready"
	// PathMetrics are the agent's own metrics.
	PathMetrics = "/metrics"
)

// Paths of the facts server.
const (
	// PathFacts answers a facts.Agent. With ?digest=<etag>&wait=<duration> it answers when the facts have another digest, or after the time given.
	PathFacts = "/v1/facts"
	// PathIdentity answers an Identity. With ?address= and ?hostID= it says what this node's ring knows of them.
	PathIdentity = "/v1/identity"
)

// Containers of a pod.
const (
	ContainerAgent     = "agent"
	ContainerCassandra = "cassandra"
)

// Names of the pod's volumes, other than those named after the record's (data, commitlog, …).
const (
	VolumeShared = "helenus"
	VolumeLogs   = "logs"
	VolumeTLS    = "tls"
	// VolumeAgentRun is the agent's private directory.
	VolumeAgentRun = "agent-run"
	// VolumeAgentTmp and VolumeCassandraTmp are the two /tmp.
	VolumeAgentTmp     = "agent-tmp"
	VolumeCassandraTmp = "cassandra-tmp"
	// VolumeToken is the projected token, authority and namespace, in the agent's container only.
	VolumeToken = "api-token"
)

// Where volumes are mounted.
const (
	// MountShared is in both containers: helenus-init, its socket, the copy of the image's configuration, the rendered one, the Java agents.
	MountShared = "/helenus"
	// MountData is in both containers: Cassandra's directories, the markers and the journal.
	MountData = "/var/lib/cassandra"
	// MountCommitlog is in both containers, where the record has such a volume. It is the directory that Cassandra uses without one, too.
	MountCommitlog = MountData + "/commitlog"
	// MountLogs is in both containers: the agent reads the last lines of system.log there.
	MountLogs = "/var/log/cassandra"
	// MountTLS is in the agent's container only: tls.crt, tls.key, ca.crt.
	MountTLS = "/etc/helenus/tls"
	// MountAgentRun is in the agent's container only: what must not outlive the pod and nobody else may read.
	MountAgentRun = "/var/run/helenus-agent"
	// MountToken is in the agent's container only, at the usual path.
	MountToken = "/var/run/secrets/kubernetes.io/serviceaccount" //nolint:gosec // a path
	// MountTmp is in both containers, a volume each.
	MountTmp = "/tmp"
)

// Files in the shared volume.
const (
	// PathInit is the command of the Cassandra container.
	PathInit = MountShared + "/bin/helenus-init"
)

// Files in the agent's image.
const (
	// ImageAgent is the entry point.
	ImageAgent = "/helenus-agent"
	// ImageInit is copied to PathInit.
	ImageInit = "/helenus-init"
	// ImageLib holds the Java agents, copied to the shared volume.
	ImageLib = "/opt/helenus"
)

// Environment of the agent's container. All but the last are required.
const (
	// EnvNode is the name of the pod (fieldRef metadata.name), which is the name of the CassandraNode.
	EnvNode = "POD_NAME"
	// EnvNamespace is fieldRef metadata.namespace.
	EnvNamespace = "POD_NAMESPACE"
	// EnvPodUID is fieldRef metadata.uid.
	EnvPodUID = "POD_UID"
	// EnvPodIP is fieldRef status.podIP.
	EnvPodIP = "POD_IP"
	// EnvMachine is fieldRef spec.nodeName.
	EnvMachine = "NODE_NAME"
	// EnvCluster is the name of the CassandraCluster.
	EnvCluster = "CLUSTER_NAME"
	// EnvClusterUID is the uid of the CassandraCluster.
	EnvClusterUID = "CLUSTER_UID"
	// EnvMemoryLimit is the memory limit of the Cassandra container in bytes (resourceFieldRef containerName cassandra, resource limits.memory). Kubernetes
	// gives the machine's memory where the container has no limit.
	EnvMemoryLimit = "CASSANDRA_MEMORY_LIMIT"
	// EnvCPULimit is the CPU limit of the Cassandra container in whole cores, rounded up (resourceFieldRef limits.cpu, divisor 1).
	EnvCPULimit = "CASSANDRA_CPU_LIMIT"
)

// UserID and GroupID of both containers: the user cassandra of the official image.
const (
	UserID  = 999
	GroupID = 999
)

// KeySeeds is the key of the ConfigMap v1alpha1.SeedsName: addresses separated by commas, members only.
const KeySeeds = "seeds"
