// Package agentapi is what an agent and those around it agree on: the contract of the pod (paths, ports, names) that the operator renders and the agent
// expects, and the questions that operator and agents ask each other over HTTPS. It imports the API types, core/facts and pki; both sides import it.
package agentapi
