package v1alpha1

// Reasons of ConditionReady of a CassandraBackupStore. docs/guide/backup-stores.md says what helps.
const (
	// ReasonStoreUsable – an object was written, read, listed and deleted, and all is as it must
	// be.
	ReasonStoreUsable = "Usable"
	// ReasonSecretMissing – there is no Secret of the name.
	ReasonSecretMissing = "SecretMissing"
	// ReasonSecretInvalid – the Secret lacks a key, or has certificates that are none.
	ReasonSecretInvalid = "SecretInvalid"
	// ReasonEndpointInvalid – the endpoint is no address of a service.
	ReasonEndpointInvalid = "EndpointInvalid"
	// ReasonBucketMissing – there is no such bucket in the region, or at the endpoint.
	ReasonBucketMissing = "BucketMissing"
	// ReasonBucketPublic – anybody can read what is written there.
	ReasonBucketPublic = "BucketPublic"
	// ReasonAccessDenied – the service refuses the access key, or what it wants to do.
	ReasonAccessDenied = "AccessDenied"
	// ReasonClockSkewed – the service refuses requests since its clock shows another time.
	ReasonClockSkewed = "ClockSkewed"
	// ReasonUnsupportedService – the service does not do what backups rely on.
	ReasonUnsupportedService = "UnsupportedService"
	// ReasonStoreUnreachable – the service does not answer, or not as one.
	ReasonStoreUnreachable = "StoreUnreachable"
)
