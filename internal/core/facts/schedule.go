package facts

import (
	"time"

	"helenus.io/helenus/api/v1alpha1"
)

// Timing is what is known of any schedule.
type Timing struct {
	// Zone is the time zone that its spec names; nil if there is none of the name.
	Zone *time.Location
	// Cluster says that the cluster that it names is there, and not being deleted.
	Cluster bool
}

// Schedule is everything known about one schedule of tasks at one moment.
type Schedule struct {
	Timing
	// Schedule is the object of the user, never nil.
	Schedule *v1alpha1.CassandraTaskSchedule
	// Tasks of the namespace, the oldest first: its own, and those that have a name of its own.
	Tasks []*v1alpha1.CassandraTask
}

// BackupSchedule is everything known about one schedule of backups at one moment.
type BackupSchedule struct {
	Timing
	// Schedule is the object of the user, never nil.
	Schedule *v1alpha1.CassandraBackupSchedule
	// Store says that the store that it names is there, and not being deleted.
	Store bool
	// Backups of the namespace, the oldest first.
	Backups []*v1alpha1.CassandraBackup
	// Keeper is the schedule that keeps the commit logs of the cluster; nil if none does. Records
	// are those of the cluster, if it is this one.
	Keeper  *v1alpha1.CassandraBackupSchedule
	Records []v1alpha1.CassandraNode
	// Source is the cluster, and Drill the one of the name that its restore drills have; nil where
	// there is none, or drills are not wanted.
	Source, Drill *v1alpha1.CassandraCluster
}
