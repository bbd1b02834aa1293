package v1alpha1

import (
	"slices"

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
// +kubebuilder:printcolumn:name="Bucket",type=string,JSONPath=`.spec['s3','gcs'].bucket`
// +kubebuilder:printcolumn:name="Container",type=string,JSONPath=`.spec.azure.container`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Checked",type=date,JSONPath=`.status.lastCheckTime`
// +kubebuilder:printcolumn:name="Prefix",type=string,priority=1,JSONPath=`.spec['s3','azure','gcs'].prefix`
// +kubebuilder:printcolumn:name="Endpoint",type=string,priority=1,JSONPath=`.spec['s3','azure','gcs'].endpoint`
type CassandraBackupStore struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// Spec is where backups are kept. What was written elsewhere would be lost with another bucket
	// or prefix, and what was encrypted otherwise with another mode, so none can be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule=`has(self.s3) == has(oldSelf.s3) && (!has(self.s3) || self.s3.bucket == oldSelf.s3.bucket && (has(self.s3.prefix) ? self.s3.prefix : '') == (has(oldSelf.s3.prefix) ? oldSelf.s3.prefix : ''))`,message=`the bucket and the prefix of a CassandraBackupStore cannot be changed: create another one`
	// +kubebuilder:validation:XValidation:rule=`!has(self.azure) || !has(oldSelf.azure) || self.azure.account == oldSelf.azure.account && self.azure.container == oldSelf.azure.container && (has(self.azure.prefix) ? self.azure.prefix : '') == (has(oldSelf.azure.prefix) ? oldSelf.azure.prefix : '')`,message=`the account, the container and the prefix of a CassandraBackupStore cannot be changed: create another one`
	// +kubebuilder:validation:XValidation:rule=`has(self.gcs) == has(oldSelf.gcs) && (!has(self.gcs) || self.gcs.bucket == oldSelf.gcs.bucket && (has(self.gcs.prefix) ? self.gcs.prefix : '') == (has(oldSelf.gcs.prefix) ? oldSelf.gcs.prefix : ''))`,message=`the bucket and the prefix of a CassandraBackupStore cannot be changed: create another one`
	// +kubebuilder:validation:XValidation:rule=`(has(self.encryption) ? self.encryption.mode : 'None') == (has(oldSelf.encryption) ? oldSelf.encryption.mode : 'None')`,message=`encryption.mode of a CassandraBackupStore cannot be changed: create another one, with another prefix`
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

	// CheckedSecret is the version of the Secrets that it was checked with; empty if it names none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	CheckedSecret string `json:"checkedSecret,omitempty"`

	// Clusters with files in the store, by their uid: those of the namespace, those of which it has
	// CassandraBackups, and others that have a complete backup there.
	// +optional
	// +listType=map
	// +listMapKey=uid
	// +kubebuilder:validation:MaxItems=100
	Clusters []StoredCluster `json:"clusters,omitempty"`
}

// StoredCluster is what a store has of a cluster, as of the last sweep: once a day files are
// deleted that no backup needs. Those of clusters that are not of the namespace, and of which it
// has no CassandraBackups, are not swept: the latest backup alone is known.
type StoredCluster struct {
	// UID of the cluster.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=36
	UID types.UID `json:"uid"`

	// LatestBackup is the latest complete backup in the store. It is looked for each hour.
	// +optional
	LatestBackup *StoredBackup `json:"latestBackup,omitempty"`

	// SweptAt is when the last sweep has ended.
	// +optional
	SweptAt *metav1.Time `json:"sweptAt,omitempty"`

	// Files of backups that are there, and their Bytes. The small files of an SSTable
	// are one.
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

	// LogBytes are those of commit logs.
	// +optional
	LogBytes int64 `json:"logBytes,omitempty"`

	// Alone has of each backup the bytes of the files that no other one has: what its deletion
	// would free. The 64 largest.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=64
	Alone []AloneInStore `json:"alone,omitempty"`

	// Deleted is how many files the last sweep has deleted.
	// +optional
	Deleted int64 `json:"deleted,omitempty"`

	// Locked is how many files the last sweep would have deleted, and could not yet.
	// +optional
	Locked int64 `json:"locked,omitempty"`

	// Problem is why it could not be swept since then, or its latest backup not be read.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Problem string `json:"problem,omitempty"`
}

// AloneInStore is what one backup alone has in a store.
type AloneInStore struct {
	// ID of the backup.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	ID string `json:"id"`

	// Bytes of its files that no other backup has.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
}

// StoredBackup is a complete backup in a store.
type StoredBackup struct {
	// ID of the backup.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	ID string `json:"id"`

	// TakenAt is when its first snapshot was taken.
	// +required
	TakenAt metav1.Time `json:"takenAt"`

	// Cluster that it was taken of, as namespace/name.
	// +optional
	// +kubebuilder:validation:MaxLength=320
	Cluster string `json:"cluster,omitempty"`
}

// BackupStoreSpec says where backups are kept: in one of s3, azure and gcs.
//
// +kubebuilder:validation:XValidation:rule=`(has(self.s3) ? 1 : 0) + (has(self.azure) ? 1 : 0) + (has(self.gcs) ? 1 : 0) == 1`,message=`one of s3, azure and gcs must be set`
// +kubebuilder:validation:XValidation:rule=`has(self.s3) || !has(self.lock) || self.lock.mode == 'None'`,message=`lock needs s3: it is the object lock of that protocol`
type BackupStoreSpec struct {
	// S3 is a bucket of a service that speaks the S3 protocol.
	// +optional
	S3 *S3Store `json:"s3,omitempty"`

	// Azure is a container of Azure Blob Storage.
	// +optional
	Azure *AzureStore `json:"azure,omitempty"`

	// GCS is a bucket of Google Cloud Storage.
	// +optional
	GCS *GCSStore `json:"gcs,omitempty"`

	// Encryption of all that is written, before it leaves the host. Default: none; the service may
	// have its own.
	// +optional
	Encryption *StoreEncryption `json:"encryption,omitempty"`

	// Lock of what backups consist of, which keeps anybody from deleting it. Default: none.
	// +optional
	Lock *StoreLock `json:"lock,omitempty"`
}

// StoreLockMode says who may delete what is locked.
//
// +kubebuilder:validation:Enum=None;Governance;Compliance
type StoreLockMode string

// Modes of locks: with Governance those may delete who have a right of their own to do so, and with
// Compliance nobody.
const (
	StoreLockNone       StoreLockMode = "None"
	StoreLockGovernance StoreLockMode = "Governance"
	StoreLockCompliance StoreLockMode = "Compliance"
)

// StoreLock is the object lock of S3.
//
// +kubebuilder:validation:XValidation:rule=`(self.mode != 'None') == has(self.days)`,message=`days is required with mode Governance and Compliance, and not allowed with None`
type StoreLock struct {
	// Mode says who may delete what is locked.
	// +required
	Mode StoreLockMode `json:"mode"`

	// Days that a backup cannot be deleted after it was taken. What it consists of is locked for up
	// to a quarter longer.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3650
	Days int32 `json:"days,omitempty"`
}

// StoreEncryptionMode says who encrypts.
//
// +kubebuilder:validation:Enum=None;Client
type StoreEncryptionMode string

// Modes of encryption.
const (
	StoreEncryptionNone   StoreEncryptionMode = "None"
	StoreEncryptionClient StoreEncryptionMode = "Client"
)

// StoreEncryption is how the objects of a store are encrypted before they leave the host.
//
// +kubebuilder:validation:XValidation:rule=`(self.mode == 'Client') == has(self.secretName)`,message=`secretName is required with mode Client, and not allowed with None`
type StoreEncryption struct {
	// Mode is Client if all objects are encrypted by age (age-encryption.org), for the first
	// identity in the Secret.
	// +required
	Mode StoreEncryptionMode `json:"mode"`

	// SecretName is the Secret with identities: lines that begin with AGE-SECRET-KEY-1, as
	// age-keygen makes them. The first encrypts, and all decrypt.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`
}

// EncryptionSecret is the Secret with the identities; empty if nothing is encrypted.
func (s *BackupStoreSpec) EncryptionSecret() string {
	if s.Encryption == nil || s.Encryption.Mode != StoreEncryptionClient {
		return ""
	}
	return s.Encryption.SecretName
}

// CredentialsSecret is the Secret by which the store is reached; empty if none is needed for that.
func (s *BackupStoreSpec) CredentialsSecret() string {
	switch {
	case s.S3 != nil:
		return s.S3.SecretName
	case s.Azure != nil:
		return s.Azure.SecretName
	case s.GCS != nil:
		return s.GCS.SecretName
	}
	return ""
}

// SecretNames are the Secrets by which a store is reached and its objects are read.
func (s *BackupStoreSpec) SecretNames() []string {
	var out []string
	if name := s.CredentialsSecret(); name != "" {
		out = append(out, name)
	}
	if name := s.EncryptionSecret(); name != "" && !slices.Contains(out, name) {
		out = append(out, name)
	}
	return out
}

// S3Store is a bucket of a service that speaks the S3 protocol.
//
// +kubebuilder:validation:XValidation:rule=`has(self.secretName) != (has(self.serviceAccount) && self.serviceAccount)`,message=`one of secretName and serviceAccount: true must be set`
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
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`

	// ServiceAccount says that the service is reached without a key: by the identity that AWS gives
	// to the service accounts of the operator and of the agents, or to their hosts. Default: false.
	// +optional
	ServiceAccount bool `json:"serviceAccount,omitempty"`
}

// AzureStore is a container of Azure Blob Storage.
//
// +kubebuilder:validation:XValidation:rule=`has(self.secretName) != (has(self.serviceAccount) && self.serviceAccount)`,message=`one of secretName and serviceAccount: true must be set`
// +kubebuilder:validation:XValidation:rule=`!has(self.serviceAccount) || !self.serviceAccount || !has(self.endpoint) || self.endpoint.matches('^https://[0-9a-z-]+([.]z[0-9]+)?[.]blob[.](core[.]windows[.]net|core[.]usgovcloudapi[.]net|core[.]chinacloudapi[.]cn|storage[.]azure[.]net)$')`,message=`with serviceAccount the endpoint must be one of Azure itself by https://, such as https://orders.blob.core.usgovcloudapi.net: who has it gets a token for all that the identity may`
type AzureStore struct {
	// Account is the name of the storage account.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[0-9a-z]+$')`,message=`account must be the name of a storage account: lower-case letters and digits`
	Account string `json:"account"`

	// Container is its name.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[0-9a-z]+(-[0-9a-z]+)*$')`,message=`container must be the name of a container: lower-case letters, digits, and hyphens between them`
	Container string `json:"container"`

	// Prefix of the names of all objects, without a slash at its ends.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[0-9A-Za-z_-][0-9A-Za-z._-]*(/[0-9A-Za-z_-][0-9A-Za-z._-]*)*$')`,message=`prefix must be names of letters, digits, dots, hyphens and underscores with slashes between them, such as cassandra/orders`
	Prefix string `json:"prefix,omitempty"`

	// Endpoint of the account, such as https://orders.blob.core.usgovcloudapi.net. Default:
	// https://ACCOUNT.blob.core.windows.net.
	// +optional
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule=`isURL(self) && self.matches('^https?://[0-9A-Za-z.:-]+(/[0-9a-z]+)?$')`,message=`endpoint must be http:// or https:// with a host and perhaps a port and a name, such as https://orders.blob.core.usgovcloudapi.net`
	Endpoint string `json:"endpoint,omitempty"`

	// SecretName is the Secret with accountKey, an access key of the account, in the namespace of
	// the store. With a ca.crt of certificates in PEM, the authorities in it are trusted, too.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`

	// ServiceAccount says that the account is reached without a key: by the identity that Microsoft
	// Entra Workload ID gives to the service accounts of the operator and of the agents. Default:
	// false.
	// +optional
	ServiceAccount bool `json:"serviceAccount,omitempty"`
}

// GCSStore is a bucket of Google Cloud Storage.
//
// +kubebuilder:validation:XValidation:rule=`has(self.secretName) != (has(self.serviceAccount) && self.serviceAccount)`,message=`one of secretName and serviceAccount: true must be set`
// +kubebuilder:validation:XValidation:rule=`!has(self.serviceAccount) || !self.serviceAccount || !has(self.endpoint) || self.endpoint.matches('^https://[0-9a-z.-]+[.]googleapis[.]com$')`,message=`with serviceAccount the endpoint must be one of Google itself by https://, such as https://storage.europe-west3.rep.googleapis.com: who has it gets a token for all objects that the identity may read and write`
type GCSStore struct {
	// Bucket is its name.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=222
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-z0-9][a-z0-9._-]*[a-z0-9]$') && !self.contains('..')`,message=`bucket must be the name of a bucket: lower-case letters, digits, dots, hyphens and underscores`
	Bucket string `json:"bucket"`

	// Prefix of the names of all objects, without a slash at its ends.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[0-9A-Za-z_-][0-9A-Za-z._-]*(/[0-9A-Za-z_-][0-9A-Za-z._-]*)*$')`,message=`prefix must be names of letters, digits, dots, hyphens and underscores with slashes between them, such as cassandra/orders`
	Prefix string `json:"prefix,omitempty"`

	// Endpoint of the service, such as https://storage.europe-west3.rep.googleapis.com. Default:
	// https://storage.googleapis.com.
	// +optional
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule=`isURL(self) && self.matches('^https?://[0-9A-Za-z.:-]+$')`,message=`endpoint must be http:// or https:// with a host and perhaps a port, such as https://storage.europe-west3.rep.googleapis.com`
	Endpoint string `json:"endpoint,omitempty"`

	// SecretName is the Secret with serviceAccountKey, a key of a service account of Google in
	// JSON, in the namespace of the store. With a ca.crt of certificates in PEM, the authorities in
	// it are trusted, too.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`

	// ServiceAccount says that the bucket is reached without a key: by the identity that Workload
	// Identity Federation for GKE gives to the service accounts of the operator and of the agents,
	// or by that of their hosts. Default: false.
	// +optional
	ServiceAccount bool `json:"serviceAccount,omitempty"`
}

// Keys of the Secrets of a store.
const (
	KeyAccessKeyID     = "accessKeyID"
	KeySecretAccessKey = "secretAccessKey"
	// KeyAccountKey has an access key of a storage account of Azure, in base64.
	KeyAccountKey = "accountKey"
	// KeyServiceAccountKey has a key of a service account of Google, in JSON.
	KeyServiceAccountKey = "serviceAccountKey"
	// KeyStoreAuthority has the certificates of the authorities that sign that of the endpoint, in
	// PEM. It is not needed for those that the host trusts.
	KeyStoreAuthority = "ca.crt"
	// KeyIdentities has those of age, one a line.
	KeyIdentities = "identities"
)
