// Package e2e tests Helenus on real Cassandra in a real Kubernetes, from outside. It has tests
// alone, behind the build tag e2e, since each takes a minute or so; they import package scene, and
// what dev/demo has to make Kubernetes ready.
package e2e
