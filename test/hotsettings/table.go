package hotsettings

// Setting is one setting of cassandra.yaml that a running node changes without a restart. The
// change is lost with the JVM, so the file has to say the same.
type Setting struct {
	// Key in cassandra.yaml, by its name since 4.1.
	Key  string
	Form Form
	// Since is the first release that has it: "4.1" or "5.0".
	Since string
	// Bean and Attribute read it. Attribute is empty for a setting that a bean takes and does not
	// show.
	Bean, Attribute string
	// Write is the attribute to write, if it is not Attribute.
	Write string
	// Operation sets a pair of thresholds, warn first, and PairKeys are the keys of both; Attribute
	// reads this one.
	Operation string
	PairKeys  [2]string
	// Unit is how many milliseconds, bytes, or bytes per second one unit of the attribute is;
	// ReadUnit the same for Attribute if it differs from the attribute that is written.
	Unit, ReadUnit int64
}

const (
	beanStorageService  = "org.apache.cassandra.db:type=StorageService"
	beanStorageProxy    = "org.apache.cassandra.db:type=StorageProxy"
	beanGuardrails      = "org.apache.cassandra.db:type=Guardrails"
	beanFailureDetector = "org.apache.cassandra.net:type=FailureDetector"

	since41 = "4.1"
	since50 = "5.0"

	kib = 1 << 10
	mib = 1 << 20
)

// All lists all of them; each was set and read back on real nodes of 4.1 and 5.0, and
// compared with their table system_views.settings. Not possible at run time, although it looks so:
// slow_query_log_timeout (no attribute) and the sizes of stages such as concurrent_reads (the
// operation is refused).
func All() []Setting {
	ss, sp, gr := beanStorageService, beanStorageProxy, beanGuardrails
	settings := []Setting{
		{Key: "compaction_throughput", Form: FormRate, Bean: ss, Attribute: "CompactionThroughtputBytesPerSec",
			ReadUnit: 1, Write: "CompactionThroughputMbPerSec", Unit: mib},
		{Key: "stream_throughput_outbound", Form: FormRate, Bean: ss,
			Attribute: "StreamThroughputMebibytesPerSecAsDouble", Write: "StreamThroughputMebibytesPerSec", Unit: mib},
		{Key: "inter_dc_stream_throughput_outbound", Form: FormRate, Bean: ss,
			Attribute: "InterDCStreamThroughputMebibytesPerSecAsDouble",
			Write:     "InterDCStreamThroughputMebibytesPerSec", Unit: mib},
		{Key: "entire_sstable_stream_throughput_outbound", Form: FormRate, Bean: ss,
			Attribute: "EntireSSTableStreamThroughputMebibytesPerSecAsDouble",
			Write:     "EntireSSTableStreamThroughputMebibytesPerSec", Unit: mib},
		{Key: "entire_sstable_inter_dc_stream_throughput_outbound", Form: FormRate, Bean: ss,
			Attribute: "EntireSSTableInterDCStreamThroughputMebibytesPerSecAsDouble",
			Write:     "EntireSSTableInterDCStreamThroughputMebibytesPerSec", Unit: mib},
		{Key: "hinted_handoff_throttle", Form: FormSize, Bean: ss, Write: "HintedHandoffThrottleInKB", Unit: kib},
		{Key: "batchlog_replay_throttle", Form: FormSize, Bean: ss, Attribute: "BatchlogReplayThrottleInKB", Unit: kib},

		{Key: "concurrent_compactors", Form: FormInteger, Bean: ss, Attribute: "ConcurrentCompactors"},
		{Key: "concurrent_validations", Form: FormInteger, Bean: ss, Attribute: "ConcurrentValidators"},
		{Key: "concurrent_materialized_view_builders", Form: FormInteger, Bean: ss,
			Attribute: "ConcurrentViewBuilders"},

		{Key: "request_timeout", Form: FormDuration, Bean: ss, Attribute: "RpcTimeout"},
		{Key: "read_request_timeout", Form: FormDuration, Bean: ss, Attribute: "ReadRpcTimeout"},
		{Key: "range_request_timeout", Form: FormDuration, Bean: ss, Attribute: "RangeRpcTimeout"},
		{Key: "write_request_timeout", Form: FormDuration, Bean: ss, Attribute: "WriteRpcTimeout"},
		{Key: "counter_write_request_timeout", Form: FormDuration, Bean: ss, Attribute: "CounterWriteRpcTimeout"},
		{Key: "truncate_request_timeout", Form: FormDuration, Bean: ss, Attribute: "TruncateRpcTimeout"},
		{Key: "cas_contention_timeout", Form: FormDuration, Bean: ss, Attribute: "CasContentionTimeout"},
		{Key: "native_transport_timeout", Form: FormDuration, Bean: ss, Attribute: "NativeTransportTimeoutMillis"},
		{Key: "internode_tcp_connect_timeout", Form: FormDuration, Bean: ss,
			Attribute: "InternodeTcpConnectTimeoutInMS"},
		{Key: "internode_tcp_user_timeout", Form: FormDuration, Bean: ss, Attribute: "InternodeTcpUserTimeoutInMS"},
		{Key: "internode_streaming_tcp_user_timeout", Form: FormDuration, Bean: ss,
			Attribute: "InternodeStreamingTcpUserTimeoutInMS"},

		{Key: "max_hint_window", Form: FormDuration, Bean: sp, Attribute: "MaxHintWindow"},
		{Key: "hinted_handoff_enabled", Form: FormBoolean, Bean: sp, Attribute: "HintedHandoffEnabled"},
		{Key: "max_hints_size_per_host", Form: FormSize, Bean: sp, Attribute: "MaxHintsSizePerHostInMiB", Unit: mib},

		{Key: "batch_size_warn_threshold", Form: FormSize, Bean: ss, Attribute: "BatchSizeWarnThreshold", Unit: kib},
		{Key: "batch_size_fail_threshold", Form: FormSize, Bean: ss, Attribute: "BatchSizeFailureThreshold", Unit: kib},
		{Key: "tombstone_warn_threshold", Form: FormInteger, Bean: ss, Attribute: "TombstoneWarnThreshold"},
		{Key: "tombstone_failure_threshold", Form: FormInteger, Bean: ss, Attribute: "TombstoneFailureThreshold"},
		{Key: "column_index_size", Form: FormSize, Bean: ss, Attribute: "ColumnIndexSizeInKiB",
			Write: "ColumnIndexSize", Unit: kib},
		{Key: "column_index_cache_size", Form: FormSize, Bean: ss, Attribute: "ColumnIndexCacheSize", Unit: kib},
		{Key: "read_thresholds_enabled", Form: FormBoolean, Bean: ss, Attribute: "ReadThresholdsEnabled"},
		{Key: "coordinator_read_size_warn_threshold", Form: FormSizeText, Bean: ss,
			Attribute: "CoordinatorLargeReadWarnThreshold"},
		{Key: "coordinator_read_size_fail_threshold", Form: FormSizeText, Bean: ss,
			Attribute: "CoordinatorLargeReadAbortThreshold"},
		{Key: "local_read_size_warn_threshold", Form: FormSizeText, Bean: ss,
			Attribute: "LocalReadTooLargeWarnThreshold"},
		{Key: "local_read_size_fail_threshold", Form: FormSizeText, Bean: ss,
			Attribute: "LocalReadTooLargeAbortThreshold"},
		{Key: "row_index_read_size_warn_threshold", Form: FormSizeText, Bean: ss,
			Attribute: "RowIndexReadSizeWarnThreshold"},
		{Key: "row_index_read_size_fail_threshold", Form: FormSizeText, Bean: ss,
			Attribute: "RowIndexReadSizeAbortThreshold"},

		{Key: "incremental_backups", Form: FormBoolean, Bean: ss, Attribute: "IncrementalBackupsEnabled"},
		{Key: "snapshot_links_per_second", Form: FormInteger, Bean: ss, Attribute: "SnapshotLinksPerSecond"},
		{Key: "sstable_preemptive_open_interval", Form: FormSize, Bean: ss,
			Attribute: "SSTablePreemptiveOpenIntervalInMB", Unit: mib},
		{Key: "default_keyspace_rf", Form: FormInteger, Bean: ss, Attribute: "DefaultKeyspaceReplicationFactor"},
		{Key: "repair_session_max_tree_depth", Form: FormInteger, Bean: ss, Attribute: "RepairSessionMaxTreeDepth"},
		{Key: "phi_convict_threshold", Form: FormNumber, Bean: beanFailureDetector, Attribute: "PhiConvictThreshold"},
		{Key: "paxos_variant", Form: FormText, Bean: sp, Attribute: "PaxosVariant"},
		{Key: "skip_paxos_repair_on_topology_change", Form: FormBoolean, Bean: ss,
			Attribute: "SkipPaxosRepairOnTopologyChange"},

		{Key: "native_transport_max_concurrent_connections", Form: FormInteger, Bean: sp,
			Attribute: "NativeTransportMaxConcurrentConnections"},
		{Key: "native_transport_max_concurrent_connections_per_ip", Form: FormInteger, Bean: sp,
			Attribute: "NativeTransportMaxConcurrentConnectionsPerIp"},
		{Key: "native_transport_max_request_data_in_flight", Form: FormSize, Bean: ss,
			Attribute: "NativeTransportMaxConcurrentRequestsInBytes"},
		{Key: "native_transport_max_request_data_in_flight_per_ip", Form: FormSize, Bean: ss,
			Attribute: "NativeTransportMaxConcurrentRequestsInBytesPerIp"},
		{Key: "native_transport_rate_limiting_enabled", Form: FormBoolean, Bean: ss,
			Attribute: "NativeTransportRateLimitingEnabled"},
		{Key: "native_transport_max_requests_per_second", Form: FormInteger, Bean: ss,
			Attribute: "NativeTransportMaxRequestsPerSecond"},

		{Key: "allow_filtering_enabled", Form: FormBoolean, Bean: gr, Attribute: "AllowFilteringEnabled"},
		{Key: "drop_truncate_table_enabled", Form: FormBoolean, Bean: gr, Attribute: "DropTruncateTableEnabled"},
		{Key: "group_by_enabled", Form: FormBoolean, Bean: gr, Attribute: "GroupByEnabled"},
		{Key: "user_timestamps_enabled", Form: FormBoolean, Bean: gr, Attribute: "UserTimestampsEnabled"},
		{Key: "compact_tables_enabled", Form: FormBoolean, Bean: gr, Attribute: "CompactTablesEnabled"},
		{Key: "uncompressed_tables_enabled", Form: FormBoolean, Bean: gr, Attribute: "UncompressedTablesEnabled"},
		{Key: "secondary_indexes_enabled", Form: FormBoolean, Bean: gr, Attribute: "SecondaryIndexesEnabled"},
		{Key: "read_before_write_list_operations_enabled", Form: FormBoolean, Bean: gr,
			Attribute: "ReadBeforeWriteListOperationsEnabled"},
		{Key: "alter_table_enabled", Form: FormBoolean, Bean: gr, Attribute: "AlterTableEnabled", Since: since50},
		{Key: "drop_keyspace_enabled", Form: FormBoolean, Bean: gr, Attribute: "DropKeyspaceEnabled", Since: since50},
		{Key: "simplestrategy_enabled", Form: FormBoolean, Bean: gr, Attribute: "SimpleStrategyEnabled",
			Since: since50},
		{Key: "vector_type_enabled", Form: FormBoolean, Bean: gr, Attribute: "VectorTypeEnabled", Since: since50},
		{Key: "zero_ttl_on_twcs_enabled", Form: FormBoolean, Bean: gr, Attribute: "ZeroTTLOnTWCSEnabled",
			Since: since50},
		{Key: "zero_ttl_on_twcs_warned", Form: FormBoolean, Bean: gr, Attribute: "ZeroTTLOnTWCSWarned", Since: since50},
		{Key: "intersect_filtering_query_enabled", Form: FormBoolean, Bean: gr,
			Attribute: "IntersectFilteringQueryEnabled", Since: since50},
		{Key: "intersect_filtering_query_warned", Form: FormBoolean, Bean: gr,
			Attribute: "IntersectFilteringQueryWarned", Since: since50},
		{Key: "non_partition_restricted_index_query_enabled", Form: FormBoolean, Bean: gr,
			Attribute: "NonPartitionRestrictedQueryEnabled", Since: since50},
		{Key: "read_consistency_levels_warned", Form: FormList, Bean: gr, Attribute: "ReadConsistencyLevelsWarnedCSV"},
		{Key: "read_consistency_levels_disallowed", Form: FormList, Bean: gr,
			Attribute: "ReadConsistencyLevelsDisallowedCSV"},
		{Key: "write_consistency_levels_warned", Form: FormList, Bean: gr,
			Attribute: "WriteConsistencyLevelsWarnedCSV"},
		{Key: "write_consistency_levels_disallowed", Form: FormList, Bean: gr,
			Attribute: "WriteConsistencyLevelsDisallowedCSV"},
		{Key: "table_properties_warned", Form: FormList, Bean: gr, Attribute: "TablePropertiesWarnedCSV"},
		{Key: "table_properties_ignored", Form: FormList, Bean: gr, Attribute: "TablePropertiesIgnoredCSV"},
		{Key: "table_properties_disallowed", Form: FormList, Bean: gr, Attribute: "TablePropertiesDisallowedCSV"},
	}
	for _, pair := range guardrailPairs {
		settings = append(settings, pair.settings()...)
	}
	for i := range settings {
		settings[i].complete()
	}
	return settings
}

// complete fills in what a row of the table leaves out.
func (s *Setting) complete() {
	if s.Since == "" {
		s.Since = since41
	}
	if s.Write == "" {
		s.Write = s.Attribute
	}
	if s.Unit == 0 {
		s.Unit = 1
	}
	if s.ReadUnit == 0 {
		s.ReadUnit = s.Unit
	}
}

// guardrailPair is a guardrail with two thresholds, <key>_warn_threshold and <key>_fail_threshold,
// that one operation sets together.
type guardrailPair struct {
	key, name, javaType string
	form                Form
	since               string
}

var guardrailPairs = []guardrailPair{
	{key: "keyspaces", name: "Keyspaces", javaType: "int", form: FormInteger},
	{key: "tables", name: "Tables", javaType: "int", form: FormInteger},
	{key: "columns_per_table", name: "ColumnsPerTable", javaType: "int", form: FormInteger},
	{key: "secondary_indexes_per_table", name: "SecondaryIndexesPerTable", javaType: "int", form: FormInteger},
	{key: "materialized_views_per_table", name: "MaterializedViewsPerTable", javaType: "int", form: FormInteger},
	{key: "page_size", name: "PageSize", javaType: "int", form: FormInteger},
	{key: "partition_keys_in_select", name: "PartitionKeysInSelect", javaType: "int", form: FormInteger},
	{key: "in_select_cartesian_product", name: "InSelectCartesianProduct", javaType: "int", form: FormInteger},
	{key: "items_per_collection", name: "ItemsPerCollection", javaType: "int", form: FormInteger},
	{key: "fields_per_udt", name: "FieldsPerUDT", javaType: "int", form: FormInteger},
	{key: "data_disk_usage_percentage", name: "DataDiskUsagePercentage", javaType: "int", form: FormInteger},
	{key: "minimum_replication_factor", name: "MinimumReplicationFactor", javaType: "int", form: FormInteger},
	{key: "maximum_replication_factor", name: "MaximumReplicationFactor", javaType: "int", form: FormInteger,
		since: since50},
	{key: "vector_dimensions", name: "VectorDimensions", javaType: "int", form: FormInteger, since: since50},
	{key: "sai_sstable_indexes_per_query", name: "SaiSSTableIndexesPerQuery", javaType: "int", form: FormInteger,
		since: since50},
	{key: "partition_tombstones", name: "PartitionTombstones", javaType: "long", form: FormInteger, since: since50},
	{key: "collection_size", name: "CollectionSize", javaType: "java.lang.String", form: FormSizeText},
	{key: "column_value_size", name: "ColumnValueSize", javaType: "java.lang.String", form: FormSizeText,
		since: since50},
	{key: "partition_size", name: "PartitionSize", javaType: "java.lang.String", form: FormSizeText, since: since50},
	{key: "sai_string_term_size", name: "SaiStringTermSize", javaType: "java.lang.String", form: FormSizeText,
		since: since50},
	{key: "sai_frozen_term_size", name: "SaiFrozenTermSize", javaType: "java.lang.String", form: FormSizeText,
		since: since50},
	{key: "sai_vector_term_size", name: "SaiVectorTermSize", javaType: "java.lang.String", form: FormSizeText,
		since: since50},
}

// settings are the two halves of the pair.
func (p guardrailPair) settings() []Setting {
	keys := [2]string{p.key + "_warn_threshold", p.key + "_fail_threshold"}
	attributes := [2]string{p.name + "WarnThreshold", p.name + "FailThreshold"}
	halves := make([]Setting, len(keys))
	for i := range keys {
		halves[i] = Setting{
			Key: keys[i], Form: p.form, Since: p.since, Bean: beanGuardrails, Attribute: attributes[i],
			Operation: "set" + p.name + "Threshold(" + p.javaType + "," + p.javaType + ")", PairKeys: keys,
		}
	}
	return halves
}
