// Package agentapi is what is asked of an agent over HTTPS, by the operator and by other agents:
// the paths, the answers that core/facts does not define, and the client. What a pod looks like is
// in core/layout. It imports core/facts, core/layout and pki.
package agentapi
