// Package agent tests the real agent, the real helenus-init and a real Cassandra from its image,
// without Kubernetes: a network namespace, a process namespace and a file system of its own for
// each pod, and an API server in memory. It needs root, ip, unshare, setpriv, curl and overlayfs:
//
//	HELENUS_CASSANDRA_IMAGE=$(images path cassandra-5.0.6) HELENUS_JOLOKIA_JAR=<jolokia-agent-jvm …-javaagent.jar> \
//	  go test -tags cassandra -v -timeout 20m ./test/agent
//
// TestMetrics takes the Java agent for metrics out of the agent's image:
// HELENUS_AGENT_IMAGE=$(images path helenus-agent).
//
// HELENUS_TEST_LOGS names a directory in which the logs of agents and Cassandras are kept.
package agent
