// Package agentapi is what the operator and the agents say to each other over HTTPS: paths, queries and answers, client and server side of the wire. The
// names of the pod (paths, ports, variables) are in internal/core/layout, which the renderer and the agent share; facts are those of internal/core/facts.
// It never imports controller-runtime.
package agentapi
