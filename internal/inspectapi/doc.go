// Package inspectapi is what the operator and `kubectl helenus plan` say to each other: the path,
// and the answer, which is one observation of a cluster in brief with the plan that follows from
// it. It imports the API, core and Kubernetes API types, so that both sides can link it.
package inspectapi
