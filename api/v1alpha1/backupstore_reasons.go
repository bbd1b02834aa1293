package v1alpha1

// Reasons of ConditionReady of a CassandraBackupStore. docs/guide/backup-stores.md says what helps.
const (
	// ReasonStoreUsable – an object was written, read, listed and deleted, and all is as it must
	// be.
	ReasonStoreUsable = "Usable"
	// ReasonSecretMissing – there is no Secret of the name.
	ReasonSecretMissing = "SecretMissing"
	// ReasonSecretInvalid – a Secret lacks a key, or has certificates or identities that are none.
	ReasonSecretInvalid = "SecretInvalid"
	// ReasonEndpointInvalid – the endpoint is no address of a service.
	ReasonEndpointInvalid = "EndpointInvalid"
	// ReasonBucketMissing – there is no such bucket in the region, or at the endpoint.
	ReasonBucketMissing = "BucketMissing"
	// ReasonBucketPublic – anybody can read what is written there.
	ReasonBucketPublic = "BucketPublic"
	// ReasonEncryptionMismatch – what is there is encrypted for an identity that the Secret lacks,
	// or is not encrypted though it is to be, or is though it is not to be.
	ReasonEncryptionMismatch = "EncryptionMismatch"
	// ReasonIdentityMissing – the pod's service account has no identity.
	ReasonIdentityMissing = "IdentityMissing"
	// ReasonAccessDenied – the service refuses the access key or the identity, or what it wants to
	// do.
	ReasonAccessDenied = "AccessDenied"
	// ReasonLockUnsupported – the bucket cannot lock objects, or locks all of them.
	ReasonLockUnsupported = "LockUnsupported"
	// ReasonClockSkewed – the service refuses requests since its clock shows another time.
	ReasonClockSkewed = "ClockSkewed"
	// ReasonUnsupportedService – the service does not do what backups rely on.
	ReasonUnsupportedService = "UnsupportedService"
	// ReasonStoreUnreachable – the service does not answer, or not as one.
	ReasonStoreUnreachable = "StoreUnreachable"
)
