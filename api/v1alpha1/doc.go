// Package v1alpha1 holds the kinds of the API group helenus.io: CassandraCluster, which a user
// writes, and CassandraNode, the record of one ring member through which operator and agent talk to
// each other. It also fixes every name the parts share (labels, annotations, finalizers, object
// names, condition types and reasons). It imports the standard library and the Kubernetes API types
// only, so that the agent can link it.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +kubebuilder:ac:output:package="applyconfiguration"
// +groupName=helenus.io
package v1alpha1
