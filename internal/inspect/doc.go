// Package inspect answers who asks the operator for the plan of a cluster, and shows clusters to
// those who watch them in the console. It knows people as
// Kubernetes' own components know them (client certificates by the authorities of the API server,
// tokens by TokenReview), lets those see a plan who may get that CassandraCluster, and never writes
// anything but the questions about them. It observes nothing itself; it imports
// controller-runtime's client, and neither its manager nor the operator.
package inspect
