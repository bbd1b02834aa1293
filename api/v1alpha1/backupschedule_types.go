package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CassandraBackupSchedule makes a CassandraBackup at each time of a cron expression, and deletes
// those that are not to be kept. The backups stay when it is deleted. The operator writes the
// status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cassbackupschedule,categories=helenus
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.cluster.name`
// +kubebuilder:printcolumn:name="Store",type=string,JSONPath=`.spec.store.name`
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name="Suspended",type=boolean,JSONPath=`.spec.suspend`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.nextScheduleTime`
// +kubebuilder:printcolumn:name="Last",type=string,JSONPath=`.status.lastBackup.phase`
// +kubebuilder:printcolumn:name="Last complete",type=date,JSONPath=`.status.lastComplete.takenAt`
// +kubebuilder:printcolumn:name="Verified",type=date,JSONPath=`.status.lastVerified.at`
// +kubebuilder:printcolumn:name="Restored",type=date,JSONPath=`.status.restoreDrill.lastProven.at`
// +kubebuilder:printcolumn:name="Point in time",type=string,priority=1,JSONPath=`.status.pointInTime.message`
// +kubebuilder:printcolumn:name="Time zone",type=string,priority=1,JSONPath=`.spec.timeZone`
// +kubebuilder:printcolumn:name="Active",type=string,priority=1,JSONPath=`.status.active`
// +kubebuilder:printcolumn:name="Skipped",type=integer,priority=1,JSONPath=`.status.skipped`
// +kubebuilder:validation:XValidation:rule=`size(self.metadata.name) <= 52`,message=`the name of a CassandraBackupSchedule has at most 52 characters: those of its backups have 11 more`
// +kubebuilder:validation:XValidation:rule=`!has(self.spec.verify) || !has(self.spec.verify.restoreDrill) || size(self.metadata.name) <= 44 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')`,message=`the name of a CassandraBackupSchedule with verify.restoreDrill must begin with a letter, have letters, digits and hyphens alone, and at most 44 characters: its drills are clusters of that name with -drill`
type CassandraBackupSchedule struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// Spec is what is to be kept, when, and for how long.
	// +required
	Spec CassandraBackupScheduleSpec `json:"spec"`
	// Status is what became of it. Only the operator writes it.
	// +optional
	Status CassandraBackupScheduleStatus `json:"status,omitzero"`
}

// CassandraBackupScheduleList is a list of schedules.
//
// +kubebuilder:object:root=true
type CassandraBackupScheduleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CassandraBackupSchedule `json:"items"`
}

// CassandraBackupScheduleSpec is what is to be kept, when, and for how long. A time at which the
// backup before has not finished is skipped.
type CassandraBackupScheduleSpec struct {
	// Cluster whose data is kept, in the namespace of the schedule. It cannot be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`the cluster of a CassandraBackupSchedule cannot be changed: create another one`
	Cluster TaskCluster `json:"cluster"`

	// Store that the backups are put into, in the same namespace. A change is for those to come.
	// +required
	Store BackupStoreReference `json:"store"`

	Timing `json:",inline"`

	// Keep says which of its backups stay.
	// +required
	Keep BackupRetention `json:"keep"`

	// DeletionPolicy of its backups: one that does not stay is deleted in the store, too (Delete),
	// or as an object alone (Retain). A change is for those to come. Default: Delete.
	// +optional
	// +kubebuilder:default=Delete
	DeletionPolicy BackupDeletionPolicy `json:"deletionPolicy,omitempty"`

	// Template is what each backup has.
	// +optional
	// +kubebuilder:default={}
	Template BackupTemplate `json:"template,omitzero"`

	// Verify has the latest complete backup verified in its store. Not set: none is.
	// +optional
	Verify *BackupVerify `json:"verify,omitempty"`

	// PointInTime keeps the commit logs of the cluster in the store, too, so that a ring can be
	// made as it was at any time after a backup. Of one cluster one schedule alone has it: the
	// oldest.
	// +optional
	PointInTime *PointInTime `json:"pointInTime,omitempty"`
}

// BackupVerify says how backups are verified: all files are looked for, and some are read.
type BackupVerify struct {
	// Sample is the percentage of the files that are read whole and compared with their hash. Each
	// backup has another sample. Default: 5%.
	// +optional
	// +kubebuilder:default="5%"
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule=`self.matches('^([0-9]|[1-9][0-9]|100)%$')`,message=`verify.sample must be from 0% to 100%`
	Sample string `json:"sample,omitempty"`

	// Bandwidth is how many bytes the operator reads in a second at most, such as 50Mi.
	// Default: 50Mi.
	// +optional
	// +kubebuilder:default="50Mi"
	// +kubebuilder:validation:XValidation:rule=`(type(self) == int ? self >= 1048576 : isQuantity(self) && !quantity(self).isLessThan(quantity('1Mi')))`,messageExpression=`'bandwidth "' + string(self) + '" must be at least 1Mi; give it a unit, such as 50Mi'`
	Bandwidth *resource.Quantity `json:"bandwidth,omitempty"`

	// RestoreDrill makes a ring from the latest complete backup at each time of a schedule of its
	// own, and deletes it once it serves, or has not in time. Not set: none is made.
	// +optional
	RestoreDrill *RestoreDrill `json:"restoreDrill,omitempty"`
}

// RestoreDrill is a ring of one node that proves that a backup can be restored. It is called
// <schedule>-drill, takes what its node has from the cluster, and lets no client in.
type RestoreDrill struct {
	// Schedule is a cron expression, in the time zone of the backups, such as 0 6 * * 0.
	// +required
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[0-9A-Za-z*/,-]+( [0-9A-Za-z*/,-]+){4}$')`,message=`restoreDrill.schedule must be the five fields of cron, such as 0 6 * * 0. @every and the like are not allowed`
	Schedule string `json:"schedule"`

	// Keyspaces of users that are restored, where all would need too large a volume: give its size,
	// too. At most 64. Default: all of the backup.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=48
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_]+$`
	// +kubebuilder:validation:XValidation:rule=`self.all(k, k != 'system' && !k.startsWith('system_'))`,message=`restoreDrill.keyspaces: those of Cassandra itself come back in any case, and are not named`
	Keyspaces []string `json:"keyspaces,omitempty"`

	// Checks are queries whose answers the ring must give, at most 16: see those of
	// bootstrap.restore. Default: none is asked.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Checks []RowCheck `json:"checks,omitempty"`

	// Resources of Cassandra. Default: those of the nodes of the cluster.
	// +optional
	Resources *Resources `json:"resources,omitempty"`

	// Size of the data volume. All files of the backup are downloaded to it, and their rows written
	// once. Default: twice the bytes of the backup and 1Gi more.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`(type(self) == int ? self >= 1073741824 : isQuantity(self) && !quantity(self).isLessThan(quantity('1Gi')))`,messageExpression=`'restoreDrill.size "' + string(self) + '" must be at least 1Gi; give it a unit, such as 200Gi'`
	Size *resource.Quantity `json:"size,omitempty"`

	// Deadline by which the ring must serve. From 10m to 168h. Default: 24h.
	// +optional
	// +kubebuilder:default="24h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`duration(self) >= duration('10m') && duration(self) <= duration('168h')`,message=`restoreDrill.deadline must be from 10m to 168h`
	Deadline metav1.Duration `json:"deadline,omitzero"`
}

// PointInTime is how commit logs are kept.
type PointInTime struct {
	// Mode is Enabled or Disabled.
	// +required
	// +kubebuilder:validation:Enum=Disabled;Enabled
	Mode PointInTimeMode `json:"mode"`

	// UploadEvery is how often each node sends what its log has grown by: as much may be lost with
	// all nodes. From 5s to 10m. Default: 30s.
	// +optional
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`duration(self) >= duration('5s') && duration(self) <= duration('10m')`,message=`pointInTime.uploadEvery must be from 5s to 10m`
	UploadEvery metav1.Duration `json:"uploadEvery,omitzero"`

	// Retention is for how long back a ring can be made. What is needed for that is kept: the logs
	// since the backup before it. From 1h to 8760h. Default: 72h.
	// +optional
	// +kubebuilder:default="72h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`duration(self) >= duration('1h') && duration(self) <= duration('8760h')`,message=`pointInTime.retention must be from 1h to 8760h`
	Retention metav1.Duration `json:"retention,omitzero"`

	// MaxDisk is the share, in percent, of the volume with the commit log that segments may have
	// which were not sent yet and which Cassandra needs no more. The oldest of more are deleted.
	// Default: 10.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	MaxDisk int32 `json:"maxDisk,omitempty"`
}

// PointInTimeMode says whether commit logs are kept.
type PointInTimeMode string

// The modes.
const (
	PointInTimeOff PointInTimeMode = "Disabled"
	PointInTimeOn  PointInTimeMode = "Enabled"
)

// KeepsLogs says that the commit logs of its cluster are to be kept.
func (s *CassandraBackupSchedule) KeepsLogs() bool {
	return s.Spec.PointInTime != nil && s.Spec.PointInTime.Mode == PointInTimeOn && s.DeletionTimestamp == nil
}

// BackupRetention says which backups of a schedule stay: those that any of its fields keeps. The
// latest complete one always does.
//
// +kubebuilder:validation:XValidation:rule=`[has(self.last) ? self.last : 0, has(self.daily) ? self.daily : 0, has(self.weekly) ? self.weekly : 0, has(self.monthly) ? self.monthly : 0].exists(n, n > 0)`,message=`one of last, daily, weekly and monthly must be at least 1`
type BackupRetention struct {
	// Last is how many of the latest complete backups stay.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Last int32 `json:"last,omitempty"`

	// Daily is of how many of the latest days with a complete backup the last one of the day stays,
	// in the time zone of the schedule. So are Weekly, of weeks that begin on Monday, and Monthly.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Daily int32 `json:"daily,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Weekly int32 `json:"weekly,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Monthly int32 `json:"monthly,omitempty"`

	// MinimumAge is how old a backup is at least when it is deleted. At most 87600h. Default: 0s.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`duration(self) >= duration('0s') && duration(self) <= duration('87600h')`,message=`minimumAge must be from 0s to 87600h`
	MinimumAge *metav1.Duration `json:"minimumAge,omitempty"`
}

// CassandraBackupScheduleStatus is what became of a schedule.
type CassandraBackupScheduleStatus struct {
	ScheduleStatus `json:",inline"`

	// LastBackup is the last one that has finished.
	// +optional
	LastBackup *ScheduledBackup `json:"lastBackup,omitempty"`

	// LastComplete is the latest one that is complete.
	// +optional
	LastComplete *ScheduledBackup `json:"lastComplete,omitempty"`

	// LastVerified is the backup that was verified last.
	// +optional
	LastVerified *ScheduledVerification `json:"lastVerified,omitempty"`

	// PointInTime is what the commit logs in the store cover, where they are kept.
	// +optional
	PointInTime *PointInTimeStatus `json:"pointInTime,omitempty"`

	// RestoreDrill is what rings made from backups have proven, where they are made.
	// +optional
	RestoreDrill *RestoreDrillStatus `json:"restoreDrill,omitempty"`
}

// RestoreDrillStatus is what rings made from backups have proven.
type RestoreDrillStatus struct {
	// Since is when the operator first saw that drills are wanted.
	// +required
	Since metav1.Time `json:"since"`

	// NextScheduleTime is when the next one begins, if a backup is complete by then.
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`

	// Active is the drill under way.
	// +optional
	Active *ActiveDrill `json:"active,omitempty"`

	// LastProven is the last one whose ring served: every file of the backup was there and had its
	// hash, and all rows were loaded.
	// +optional
	LastProven *RestoredBackup `json:"lastProven,omitempty"`

	// LastFailed is the last one whose ring did not, if that was after LastProven.
	// +optional
	LastFailed *RestoredBackup `json:"lastFailed,omitempty"`
}

// Restores says that a drill under way needs a backup.
func (s *RestoreDrillStatus) Restores(id string) bool {
	return s != nil && s.Active != nil && s.Active.ID == id
}

// ActiveDrill is a drill under way.
type ActiveDrill struct {
	// Cluster is the name of the ring.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Cluster string `json:"cluster"`

	// ID of the backup.
	// +required
	// +kubebuilder:validation:MaxLength=128
	ID string `json:"id"`

	// StartedAt is when the ring was created.
	// +required
	StartedAt metav1.Time `json:"startedAt"`
}

// RestoredBackup is a backup of which a ring was made, or was to be.
type RestoredBackup struct {
	// ID of the backup.
	// +required
	// +kubebuilder:validation:MaxLength=128
	ID string `json:"id"`

	// StartedAt is when the ring was created, and At when it served, or failed.
	// +required
	StartedAt metav1.Time `json:"startedAt"`
	// +required
	At metav1.Time `json:"at"`

	// Message is why it did not serve.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// ScheduledVerification is the verification of a backup of a schedule.
type ScheduledVerification struct {
	// Name of the CassandraBackup.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// At is when it has ended.
	// +required
	At metav1.Time `json:"at"`

	// DamagedFiles is how many files were missing or damaged. The status of the backup names them.
	// +optional
	DamagedFiles int64 `json:"damagedFiles,omitempty"`

	// Full is how far it is that all files are read: a part with each verification, all within 30
	// days.
	// +optional
	Full *FullVerification `json:"full,omitempty"`
}

// PointInTimeStatus is what the commit logs of all members cover without a hole. With a backup that
// was taken in that time, a ring can be made as it was at any later time of it.
type PointInTimeStatus struct {
	// CoveredFrom is the latest beginning of any member; not set while one has none.
	// +optional
	CoveredFrom *metav1.Time `json:"coveredFrom,omitempty"`

	// CoveredTo is the earliest end, if that is more than five minutes ago. Not set while all
	// members follow.
	// +optional
	CoveredTo *metav1.Time `json:"coveredTo,omitempty"`

	// Message says it in one line.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`
}

// ScheduledBackup is a backup of a schedule that has finished.
type ScheduledBackup struct {
	// Name of the CassandraBackup.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// ID of the backup in the store.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id,omitempty"`

	// Phase in which it ended: Complete, Incomplete or Failed.
	// +required
	Phase BackupPhase `json:"phase"`

	// TakenAt is when its first snapshot was taken.
	// +optional
	TakenAt *metav1.MicroTime `json:"takenAt,omitempty"`

	// FinishedAt is when it ended.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
}
