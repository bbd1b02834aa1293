// Package execute runs an agent: it gathers the facts of its node, has core/node decide, carries
// out one action at a time and reports. Whatever it touches is behind an interface of Host, so that
// the same code runs a real pod and a simulated one.
//
// It imports core, initd, agent/journal, agent/disk, agent/record, cassandra, jolokia and agentapi;
// never the operator's side.
package execute
