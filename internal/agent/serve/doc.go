// Package serve is what an agent answers: facts over HTTPS with mutual TLS to the operator and to
// the other nodes of its cluster, and probes and metrics over plain HTTP to kubelet and Prometheus.
// It changes nothing. It imports agentapi, pki, core/facts and core/metrics.
package serve
