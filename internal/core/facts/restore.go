package facts

import "helenus.io/helenus/api/v1alpha1"

// PointRestore is everything known about one CassandraRestore with a point in time at one moment.
type PointRestore struct {
	// Object is that of the user, never nil.
	Object *v1alpha1.CassandraRestore
	// Store says that the store that it names is there, and not being deleted.
	Store bool
	// Cluster is the one whose tables get the rows. Ring and Backup are what is there under the
	// name of those that are made for the restore. Each is nil where there is none.
	Cluster, Ring *v1alpha1.CassandraCluster
	Backup        *v1alpha1.CassandraBackup
}
