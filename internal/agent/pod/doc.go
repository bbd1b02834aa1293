// Package pod is the real world of an agent: the volumes, the shared directory, the JVM's Jolokia,
// the peers' agents, as the interfaces of execute.Host want them. It imports execute, journal,
// disk, cassandra, jolokia and agentapi.
package pod
