package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// CassandraTaskSchedule makes a CassandraTask at each time of a cron expression. The tasks are its
// own: they go with it. The operator writes the status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cassschedule,categories=helenus
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.template.type`
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.cluster.name`
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name="Time zone",type=string,JSONPath=`.spec.timeZone`
// +kubebuilder:printcolumn:name="Suspended",type=boolean,JSONPath=`.spec.suspend`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Last",type=date,JSONPath=`.status.lastScheduleTime`
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.nextScheduleTime`
// +kubebuilder:printcolumn:name="Result",type=string,JSONPath=`.status.lastResult.phase`
// +kubebuilder:printcolumn:name="Active",type=string,priority=1,JSONPath=`.status.active`
// +kubebuilder:printcolumn:name="Skipped",type=integer,priority=1,JSONPath=`.status.skipped`
// +kubebuilder:validation:XValidation:rule=`size(self.metadata.name) <= 52`,message=`the name of a CassandraTaskSchedule has at most 52 characters: those of its tasks have 11 more`
type CassandraTaskSchedule struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// Spec is what is to be done, and when.
	// +required
	Spec CassandraTaskScheduleSpec `json:"spec"`
	// Status is what became of it. Only the operator writes it.
	// +optional
	Status CassandraTaskScheduleStatus `json:"status,omitzero"`
}

// CassandraTaskScheduleList is a list of schedules.
//
// +kubebuilder:object:root=true
type CassandraTaskScheduleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CassandraTaskSchedule `json:"items"`
}

// CassandraTaskScheduleSpec is what is to be done, and when. A time at which the task before has
// not finished is skipped.
type CassandraTaskScheduleSpec struct {
	// Cluster whose nodes are meant, in the namespace of the schedule. It cannot be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`the cluster of a CassandraTaskSchedule cannot be changed: create another one`
	Cluster TaskCluster `json:"cluster"`

	Timing `json:",inline"`

	// KeepSucceeded is how many tasks that have succeeded stay. Default: 3.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	KeepSucceeded *int32 `json:"keepSucceeded,omitempty"`

	// KeepFailed is how many tasks that have failed stay. Default: 3.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	KeepFailed *int32 `json:"keepFailed,omitempty"`

	// Template is the spec of each task, without the cluster.
	// +required
	// +kubebuilder:validation:XValidation:rule=`self.type != 'ResetSuperuser'`,message=`ResetSuperuser is not for a schedule: it overwrites the password that the superuser has`
	Template TaskTemplate `json:"template"`
}

// Timing says when a schedule runs.
type Timing struct {
	// Schedule is a cron expression: minute, hour, day of the month, month, day of the week (0 is
	// Sunday), such as 30 2 * * 0.
	// +required
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[0-9A-Za-z*/,-]+( [0-9A-Za-z*/,-]+){4}$')`,message=`schedule must be the five fields of cron, such as 30 2 * * 0. Time zones are for timeZone, and @every and the like are not allowed`
	Schedule string `json:"schedule"`

	// TimeZone of the schedule, by its name in the IANA database, such as Europe/Berlin.
	// Default: UTC.
	// +optional
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$') && self.lowerAscii() != 'local'`,message=`timeZone must be a name of the IANA database, such as UTC or Europe/Berlin`
	TimeZone string `json:"timeZone,omitempty"`

	// Suspend has nothing made. Times that pass meanwhile are not missed.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// Missed is what happens at times that have passed while no operator ran. One that is less than
	// five minutes late is not missed. RunOnce runs once, however many were missed; Skip does not.
	// Default: RunOnce.
	// +optional
	// +kubebuilder:default=RunOnce
	Missed MissedPolicy `json:"missed,omitempty"`
}

// MissedPolicy says what happens at times that have passed while no operator ran.
//
// +kubebuilder:validation:Enum=Skip;RunOnce
type MissedPolicy string

// The policies.
const (
	// MissedSkip does not run for times that were missed.
	MissedSkip MissedPolicy = "Skip"
	// MissedRunOnce runs once for all times that were missed.
	MissedRunOnce MissedPolicy = "RunOnce"
)

// CassandraTaskScheduleStatus is what became of a schedule.
type CassandraTaskScheduleStatus struct {
	ScheduleStatus `json:",inline"`

	// LastResult is that of the last task that has finished.
	// +optional
	LastResult *ScheduledResult `json:"lastResult,omitempty"`
}

// ScheduleStatus is how far a schedule has come.
type ScheduleStatus struct {
	// ObservedGeneration is the generation of the spec that it is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Ready, and Stalled while it is True: the user must change what its message names.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// LastScheduleTime is the latest time of the schedule that is over: it has run, or was skipped.
	// It does not run for it again, nor for any before.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`

	// NextScheduleTime is when it is to run next. Not set while it is suspended or stalled.
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`

	// Active is the name of the task or backup that has not finished.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Active string `json:"active,omitempty"`

	// Skipped is how many times of the schedule were skipped.
	// +optional
	Skipped int64 `json:"skipped,omitempty"`

	// LastSkipped says which was skipped last, and why.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	LastSkipped string `json:"lastSkipped,omitempty"`
}

// ScheduledResult is how a task has ended.
type ScheduledResult struct {
	// Task is its name.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Task string `json:"task"`

	// Phase in which it ended: Succeeded or Failed.
	// +required
	Phase TaskPhase `json:"phase"`

	// FinishedAt is when it ended.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
}

// Reasons of the conditions of a schedule; ReasonInvalidSpec is one of Stalled, too.
const (
	// ReasonScheduled – it runs at its times.
	ReasonScheduled = "Scheduled"
	// ReasonSuspended – spec.suspend is true.
	ReasonSuspended = "Suspended"
	// ReasonClusterMissing – there is no CassandraCluster of the name, or it is being deleted.
	ReasonClusterMissing = "ClusterMissing"
	// ReasonPointInTimeTaken – another schedule keeps the commit logs of the cluster.
	ReasonPointInTimeTaken = "PointInTimeTaken"
	// ReasonStoreMissing – there is no CassandraBackupStore of the name, or it is being deleted.
	ReasonStoreMissing = "StoreMissing"
)
