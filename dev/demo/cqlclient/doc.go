// Package cqlclient speaks CQL to one Cassandra pod, through the API server of its Kubernetes:
// whatever the node says of its peers, every statement goes through this coordinator. It imports
// the driver and package reach.
package cqlclient
