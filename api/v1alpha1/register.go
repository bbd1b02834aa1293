package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of all kinds of Helenus, and the prefix of its labels, annotations and
// finalizers.
const Group = "helenus.io"

var (
	// GroupVersion is the group and version of the kinds in this package.
	GroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

	// SchemeBuilder collects what AddToScheme registers.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers the kinds of this package with a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&CassandraCluster{}, &CassandraClusterList{},
		&CassandraNode{}, &CassandraNodeList{},
		&CassandraTask{}, &CassandraTaskList{},
		&CassandraTaskSchedule{}, &CassandraTaskScheduleList{},
		&CassandraBackupStore{}, &CassandraBackupStoreList{},
		&CassandraBackup{}, &CassandraBackupList{},
		&CassandraBackupSchedule{}, &CassandraBackupScheduleList{},
		&CassandraRestore{}, &CassandraRestoreList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
