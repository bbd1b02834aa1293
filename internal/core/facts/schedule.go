package facts

import (
	"time"

	"helenus.io/helenus/api/v1alpha1"
)

// Schedule is everything known about one schedule at one moment.
type Schedule struct {
	// Schedule is the object of the user, never nil.
	Schedule *v1alpha1.CassandraTaskSchedule
	// Zone is the time zone that its spec names; nil if there is none of the name.
	Zone *time.Location
	// Cluster says that the cluster that it names is there, and not being deleted.
	Cluster bool
	// Tasks of the namespace, the oldest first: its own, and those that have a name of its own.
	Tasks []*v1alpha1.CassandraTask
}
