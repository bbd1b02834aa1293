package cassandra

// Names of the beans that this package uses, as Cassandra 4.1 and 5.0 register them.
const (
	beanStorageService    = "org.apache.cassandra.db:type=StorageService"
	beanStorageProxy      = "org.apache.cassandra.db:type=StorageProxy"
	beanFailureDetector   = "org.apache.cassandra.net:type=FailureDetector"
	beanGossiper          = "org.apache.cassandra.net:type=Gossiper"
	beanMessagingService  = "org.apache.cassandra.net:type=MessagingService"
	beanSnitch            = "org.apache.cassandra.db:type=EndpointSnitchInfo"
	beanCompactionManager = "org.apache.cassandra.db:type=CompactionManager"
	beanCaches            = "org.apache.cassandra.db:type=Caches"
	beanBatchlogManager   = "org.apache.cassandra.db:type=BatchlogManager"
	beanRepairService     = "org.apache.cassandra.db:type=RepairService"
	beanClients           = "org.apache.cassandra.metrics:type=Client,name=Connections"
	beanReadLatency       = "org.apache.cassandra.metrics:type=ClientRequest,scope=Read,name=Latency"
	beanReadTotalLatency  = "org.apache.cassandra.metrics:type=ClientRequest,scope=Read,name=TotalLatency"
	beanStreamManager     = "org.apache.cassandra.net:type=StreamManager"
)
