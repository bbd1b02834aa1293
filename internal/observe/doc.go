// Package observe is the only reader of the operator: it gathers everything known about a cluster
// into one snapshot, from the cache of the API server's objects and from the agents. It decides
// nothing and never imports act.
package observe
