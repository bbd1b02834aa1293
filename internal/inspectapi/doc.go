// Package inspectapi is what the operator, `kubectl helenus plan` and the console say to each
// other: the paths, and the answers, which are one observation of a cluster in brief with the plan
// that follows from it. It imports the API, core and Kubernetes API types, so that both sides can
// link it.
package inspectapi
