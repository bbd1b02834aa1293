package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// CassandraBackupStore is where backups are kept. The operator checks whether it can be relied on,
// and writes the status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cassstore,categories=helenus
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name="Bucket",type=string,JSONPath=`.spec.s3.bucket`
// +kubebuilder:printcolumn:name="Prefix",type=string,JSONPath=`.spec.s3.prefix`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Checked",type=date,JSONPath=`.status.lastCheckTime`
// +kubebuilder:printcolumn:name="Endpoint",type=string,priority=1,JSONPath=`.spec.s3.endpoint`
type CassandraBackupStore struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// Spec is where backups are kept. What was written elsewhere would be lost with another bucket
	// or prefix, so neither can be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule=`self.s3.bucket == oldSelf.s3.bucket && (has(self.s3.prefix) ? self.s3.prefix : '') == (has(oldSelf.s3.prefix) ? oldSelf.s3.prefix : '')`,message=`the bucket and the prefix of a CassandraBackupStore cannot be changed: create another one`
	Spec BackupStoreSpec `json:"spec"`
	// Status is what the last check has found. Only the operator writes it.
	// +optional
	Status CassandraBackupStoreStatus `json:"status,omitzero"`
}

// CassandraBackupStoreList is a list of stores.
//
// +kubebuilder:object:root=true
type CassandraBackupStoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CassandraBackupStore `json:"items"`
}

// CassandraBackupStoreStatus is what the last check has found.
type CassandraBackupStoreStatus struct {
	// ObservedGeneration is the generation of the spec that it is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Ready. It is True while backups can rely on the store.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// LastCheckTime is when the store was checked last.
	// +optional
	LastCheckTime *metav1.Time `json:"lastCheckTime,omitempty"`

	// CheckedSecret is the version of the Secret that it was checked with.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	CheckedSecret string `json:"checkedSecret,omitempty"`

	// Clusters of the namespace with files in the store, by their uid.
	// +optional
	// +listType=map
	// +listMapKey=uid
	// +kubebuilder:validation:MaxItems=100
	Clusters []StoredCluster `json:"clusters,omitempty"`
}

// StoredCluster is what a store has of a cluster, as of the last sweep: once a day files are
// deleted that no backup needs.
type StoredCluster struct {
	// UID of the cluster.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=36
	UID types.UID `json:"uid"`

	// SweptAt is when the last sweep has ended.
	// +optional
	SweptAt *metav1.Time `json:"sweptAt,omitempty"`

	// Files of backups that are there, and their Bytes.
	// +optional
	Files int64 `json:"files,omitempty"`
	// +optional
	Bytes int64 `json:"bytes,omitempty"`

	// Waiting are the files, of WaitingBytes, that no backup needs, and that are deleted by a later
	// sweep, if none needs them then.
	// +optional
	Waiting int64 `json:"waiting,omitempty"`
	// +optional
	WaitingBytes int64 `json:"waitingBytes,omitempty"`

	// Deleted is how many files the last sweep has deleted.
	// +optional
	Deleted int64 `json:"deleted,omitempty"`

	// Problem is why it could not be swept since then.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Problem string `json:"problem,omitempty"`
}

// BackupStoreSpec says where backups are kept.
type BackupStoreSpec struct {
	// S3 is a bucket of a service that speaks the S3 protocol.
	// +required
	S3 *S3Store `json:"s3,omitempty"`
}

// S3Store is a bucket of a service that speaks the S3 protocol.
//
// +kubebuilder:validation:XValidation:rule=`has(self.endpoint) || has(self.region)`,message=`region must be set for a bucket of Amazon, such as eu-central-1, or endpoint for one of another service`
type S3Store struct {
	// Bucket is its name.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-z0-9][a-z0-9.-]*[a-z0-9]$') && !self.contains('..')`,message=`bucket must be the name of a bucket: lower-case letters, digits, dots and hyphens`
	Bucket string `json:"bucket"`

	// Prefix of the keys of all objects, without a slash at its ends.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[0-9A-Za-z_-][0-9A-Za-z._-]*(/[0-9A-Za-z_-][0-9A-Za-z._-]*)*$')`,message=`prefix must be names of letters, digits, dots, hyphens and underscores with slashes between them, such as cassandra/orders`
	Prefix string `json:"prefix,omitempty"`

	// Region of the bucket. Required without an endpoint; with one, the service is asked by
	// default.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[0-9A-Za-z-]+$')`,message=`region must be a name such as eu-central-1`
	Region string `json:"region,omitempty"`

	// Endpoint of the service, such as https://minio.storage:9000. Default: that of Amazon.
	// +optional
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule=`isURL(self) && self.matches('^https?://[0-9A-Za-z.:-]+$') || self.matches('^https?://[[][0-9A-Fa-f:]+[]](:[0-9]+)?$')`,message=`endpoint must be http:// or https:// with a host and perhaps a port, such as https://minio.storage:9000`
	Endpoint string `json:"endpoint,omitempty"`

	// SecretName is the Secret with accessKeyID and secretAccessKey, in the namespace of the store.
	// With a ca.crt of certificates in PEM, the authorities in it are trusted, too.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`
}

// Keys of the Secret of a store.
const (
	KeyAccessKeyID     = "accessKeyID"
	KeySecretAccessKey = "secretAccessKey"
	// KeyStoreAuthority has the certificates of the authorities that sign that of the endpoint, in
	// PEM. It is not needed for those that the host trusts.
	KeyStoreAuthority = "ca.crt"
)
