package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config/settings"
)

// Beans of Cassandra that change settings at run time.
const (
	storageService  = "org.apache.cassandra.db:type=StorageService"
	storageProxy    = "org.apache.cassandra.db:type=StorageProxy"
	failureDetector = "org.apache.cassandra.net:type=FailureDetector"
	guardrails      = "org.apache.cassandra.db:type=Guardrails"
)

// setter is how JMX takes the value of a setting.
type setter struct {
	bean string
	// attribute to write, or
	attribute string
	// operation to call with the values of the settings in arguments.
	operation string
	arguments []string
	// form of the value; for quantities the unit.
	form string
	// lines of Cassandra that have it; nil for all.
	lines []string
}

// Forms of values that are no quantities.
const (
	asIs   = "as is"   // a number, a boolean or a word
	asText = "as text" // a quantity as cassandra.yaml writes it, null if not set
	asCSV  = "as csv"  // a list as one text
)

var only50 = []string{"5.0"}

// setters by setting: what was written and read back on a running Cassandra 5.0.6 and took effect
// there; the beans of 4.1 have the same ones unless said. A setting that is accepted without effect
// (stage pools, the slow query threshold, limits of existing connections) is not here: it needs a
// restart.
var setters = map[string][]setter{
	"compaction_throughput": {attribute(storageService, "CompactionThroughputMbPerSec", "MiB/s")},
	"stream_throughput_outbound": {attribute(storageService, "StreamThroughputMebibytesPerSec",
		"MiB/s")},
	"inter_dc_stream_throughput_outbound": {attribute(storageService, "InterDCStreamThroughputMebibytesPerSec",
		"MiB/s")},
	"entire_sstable_stream_throughput_outbound": {attribute(storageService,
		"EntireSSTableStreamThroughputMebibytesPerSec", "MiB/s")},
	"concurrent_compactors":    {attribute(storageService, "ConcurrentCompactors", asIs)},
	"hinted_handoff_throttle":  {attribute(storageService, "HintedHandoffThrottleInKB", "KiB")},
	"batchlog_replay_throttle": {attribute(storageService, "BatchlogReplayThrottleInKB", "KiB")},

	"request_timeout":               {attribute(storageService, "RpcTimeout", "ms")},
	"read_request_timeout":          {attribute(storageService, "ReadRpcTimeout", "ms")},
	"range_request_timeout":         {attribute(storageService, "RangeRpcTimeout", "ms")},
	"write_request_timeout":         {attribute(storageService, "WriteRpcTimeout", "ms")},
	"counter_write_request_timeout": {attribute(storageService, "CounterWriteRpcTimeout", "ms")},
	"truncate_request_timeout":      {attribute(storageService, "TruncateRpcTimeout", "ms")},
	"cas_contention_timeout":        {attribute(storageService, "CasContentionTimeout", "ms")},

	"max_hint_window":         {attribute(storageProxy, "MaxHintWindow", "ms")},
	"hinted_handoff_enabled":  {attribute(storageProxy, "HintedHandoffEnabled", asIs)},
	"max_hints_size_per_host": {attribute(storageProxy, "MaxHintsSizePerHostInMiB", "MiB")},

	"batch_size_warn_threshold": {
		{bean: storageService, attribute: "BatchSizeWarnThresholdInKiB", form: "KiB", lines: only50},
		{bean: storageService, attribute: "BatchSizeWarnThreshold", form: "KiB"},
	},
	"batch_size_fail_threshold":   {attribute(storageService, "BatchSizeFailureThreshold", "KiB")},
	"tombstone_warn_threshold":    {attribute(storageService, "TombstoneWarnThreshold", asIs)},
	"tombstone_failure_threshold": {attribute(storageService, "TombstoneFailureThreshold", asIs)},
	"column_index_size": {
		{bean: storageService, attribute: "ColumnIndexSizeInKiB", form: "KiB", lines: only50},
		{bean: storageService, attribute: "ColumnIndexSize", form: "KiB"},
	},
	"incremental_backups":              {attribute(storageService, "IncrementalBackupsEnabled", asIs)},
	"snapshot_links_per_second":        {attribute(storageService, "SnapshotLinksPerSecond", asIs)},
	"sstable_preemptive_open_interval": {attribute(storageService, "SSTablePreemptiveOpenIntervalInMB", "MiB")},
	"default_keyspace_rf":              {attribute(storageService, "DefaultKeyspaceReplicationFactor", asIs)},
	"read_thresholds_enabled":          {attribute(storageService, "ReadThresholdsEnabled", asIs)},
	"phi_convict_threshold":            {attribute(failureDetector, "PhiConvictThreshold", asIs)},
	"paxos_variant":                    {attribute(storageProxy, "PaxosVariant", asIs)},

	"skip_paxos_repair_on_topology_change": {attribute(storageService, "SkipPaxosRepairOnTopologyChange", asIs)},

	"coordinator_read_size_warn_threshold": {attribute(storageService, "CoordinatorLargeReadWarnThreshold", asText)},
	"local_read_size_warn_threshold":       {attribute(storageService, "LocalReadTooLargeWarnThreshold", asText)},

	"native_transport_max_concurrent_connections": {attribute(storageProxy, "NativeTransportMaxConcurrentConnections",
		asIs)},
	"native_transport_max_request_data_in_flight": {attribute(storageService,
		"NativeTransportMaxConcurrentRequestsInBytes", "B")},
	"native_transport_rate_limiting_enabled": {attribute(storageService, "NativeTransportRateLimitingEnabled", asIs)},
	"native_transport_max_requests_per_second": {attribute(storageService, "NativeTransportMaxRequestsPerSecond",
		asIs)},
	"native_transport_timeout": {attribute(storageService, "NativeTransportTimeoutMillis", "ms")},

	"allow_filtering_enabled":                   {attribute(guardrails, "AllowFilteringEnabled", asIs)},
	"drop_truncate_table_enabled":               {attribute(guardrails, "DropTruncateTableEnabled", asIs)},
	"read_consistency_levels_warned":            {attribute(guardrails, "ReadConsistencyLevelsWarnedCSV", asCSV)},
	"table_properties_disallowed":               {attribute(guardrails, "TablePropertiesDisallowedCSV", asCSV)},
	"keyspaces_warn_threshold":                  {keyspacesThreshold},
	"keyspaces_fail_threshold":                  {keyspacesThreshold},
	"tables_warn_threshold":                     {tablesThreshold},
	"tables_fail_threshold":                     {tablesThreshold},
	"page_size_warn_threshold":                  {pageSizeThreshold},
	"page_size_fail_threshold":                  {pageSizeThreshold},
	"collection_size_warn_threshold":            {collectionSizeThreshold},
	"collection_size_fail_threshold":            {collectionSizeThreshold},
	"partition_size_warn_threshold":             {partitionSizeThreshold},
	"partition_size_fail_threshold":             {partitionSizeThreshold},
	"minimum_replication_factor_warn_threshold": {minimumReplicationFactorThreshold},
	"minimum_replication_factor_fail_threshold": {minimumReplicationFactorThreshold},
	"data_disk_usage_percentage_warn_threshold": {diskUsageThreshold},
	"data_disk_usage_percentage_fail_threshold": {diskUsageThreshold},
}

// Thresholds of guardrails are set in pairs, by operations.
var (
	keyspacesThreshold                = threshold("setKeyspacesThreshold(int,int)", "keyspaces", asIs, nil)
	tablesThreshold                   = threshold("setTablesThreshold(int,int)", "tables", asIs, nil)
	pageSizeThreshold                 = threshold("setPageSizeThreshold(int,int)", "page_size", asIs, nil)
	minimumReplicationFactorThreshold = threshold("setMinimumReplicationFactorThreshold(int,int)",
		"minimum_replication_factor", asIs, nil)
	diskUsageThreshold = threshold("setDataDiskUsagePercentageThreshold(int,int)", "data_disk_usage_percentage",
		asIs, nil)
	collectionSizeThreshold = threshold("setCollectionSizeThreshold(java.lang.String,java.lang.String)",
		"collection_size", asText, nil)
	partitionSizeThreshold = threshold("setPartitionSizeThreshold(java.lang.String,java.lang.String)", "partition_size",
		asText, only50)
)

func attribute(bean, name, form string) setter {
	return setter{bean: bean, attribute: name, form: form}
}

func threshold(operation, name, form string, lines []string) setter {
	return setter{bean: guardrails, operation: operation, form: form, lines: lines,
		arguments: []string{name + "_warn_threshold", name + "_fail_threshold"}}
}

// HotSettings are the settings, by their present names, that some release takes over at run time.
func HotSettings() []string { return slices.Sorted(maps.Keys(setters)) }

// setterOf a setting by its present name, in a line of Cassandra.
func setterOf(name, line string) (setter, bool) {
	for _, s := range setters[name] {
		if s.lines == nil || slices.Contains(s.lines, line) {
			return s, true
		}
	}
	return setter{}, false
}

// Write is one change through JMX: of an attribute, or by an operation.
type Write struct {
	MBean string
	// Attribute and Value, or
	Attribute string
	Value     any
	// Operation with its signature, and Arguments.
	Operation string
	Arguments []any
	// Settings that it makes effective, by their present names.
	Settings []string
}

// HotWrites are the changes through JMX that make the given settings (present names) effective as a
// newly rendered cassandra.yaml has them. An error means that one cannot be expressed, and that a
// restart is needed instead.
func HotWrites(version string, names []string, rendered []byte) ([]Write, error) {
	table, err := settings.For(version)
	if err != nil {
		return nil, fmt.Errorf("change settings at run time: %w", err)
	}
	document, err := parseDocument(rendered)
	if err != nil {
		return nil, fmt.Errorf("change settings at run time: read %s: %w", CassandraYAML, err)
	}
	var writes []Write
	done := map[string]int{}
	for _, name := range names {
		s, hot := setterOf(name, table.Line)
		if !hot {
			return nil, fmt.Errorf("%s cannot be changed at run time", name)
		}
		if at, found := done[s.operation]; found && s.operation != "" {
			writes[at].Settings = append(writes[at].Settings, name)
			continue
		}
		write, err := s.write(name, table, document)
		if err != nil {
			return nil, err
		}
		done[s.operation] = len(writes)
		writes = append(writes, write)
	}
	return writes, nil
}

func (s setter) write(name string, table *settings.Table, document *document) (Write, error) {
	w := Write{MBean: s.bean, Attribute: s.attribute, Operation: s.operation, Settings: []string{name}}
	if s.operation == "" {
		value, err := s.effective(name, table, document)
		w.Value = value
		return w, err
	}
	for _, argument := range s.arguments {
		value, err := s.effective(argument, table, document)
		if err != nil {
			return Write{}, err
		}
		w.Arguments = append(w.Arguments, value)
	}
	return w, nil
}

// effective is the value of a setting for JMX: as the file has it under any of its names, else
// Cassandra's default.
func (s setter) effective(name string, table *settings.Table, document *document) (any, error) {
	for _, alias := range table.Names(name) {
		if node := document.value(alias); node != nil && node.ShortTag() != "!!null" {
			raw, err := jsonOf(node)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", alias, err)
			}
			return s.convert(table.Lookup(alias), raw)
		}
	}
	setting := table.Lookup(name)
	if setting == nil {
		return nil, fmt.Errorf("%s is not known to Cassandra %s", name, table.Line)
	}
	raw, known := defaultOf(setting, s.form)
	if !known {
		return nil, fmt.Errorf("%s has no default that could be set at run time", name)
	}
	return s.convert(setting, raw)
}

// defaultOf is Cassandra's default of a setting as JSON.
func defaultOf(setting *settings.Setting, form string) ([]byte, bool) {
	switch {
	case setting.Default == "" && form == asText:
		return []byte("null"), true
	case setting.Default == "" && form == asCSV:
		return []byte("[]"), true
	case setting.Default == "":
		return nil, false
	case setting.Type == settings.Boolean, setting.Type == settings.Int, setting.Type == settings.Long,
		setting.Type == settings.Double:
		return []byte(setting.Default), true
	default:
		raw, err := json.Marshal(setting.Default)
		return raw, err == nil
	}
}

// convert a value of cassandra.yaml to that of JMX; an error if JMX cannot hold it exactly.
func (s setter) convert(setting *settings.Setting, raw []byte) (any, error) {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, fmt.Errorf("%s: %w", setting.Name, err)
	}
	switch s.form {
	case asIs:
		if setting.Converter != "" && setting.Converter != "IDENTITY" {
			return nil, fmt.Errorf("%s is an old name with another meaning of its number: write %s", setting.Name,
				setting.Present())
		}
		if value == nil {
			return nil, fmt.Errorf("%s has no value", setting.Name)
		}
		if number, isNumber := value.(float64); isNumber && number == math.Trunc(number) && math.Abs(number) < 1<<53 {
			return int64(number), nil
		}
		return value, nil
	case asText:
		if _, isText := value.(string); value != nil && !isText {
			return nil, fmt.Errorf("%s is no text with a unit", setting.Name)
		}
		return value, nil
	case asCSV:
		list, isList := value.([]any)
		if !isList {
			return nil, fmt.Errorf("%s is no list", setting.Name)
		}
		words := make([]string, len(list))
		for i, word := range list {
			words[i] = fmt.Sprint(word)
		}
		return strings.Join(words, ","), nil
	}
	return s.inUnit(setting, raw)
}

// kinds of quantities by unit.
var kinds = map[string]settings.Type{"ms": settings.Duration, "B": settings.Size, "KiB": settings.Size,
	"MiB": settings.Size, "MiB/s": settings.Rate}

func (s setter) inUnit(setting *settings.Setting, raw []byte) (any, error) {
	amount, known := setting.Quantity(raw)
	if !known {
		return nil, fmt.Errorf("%s: %s is no amount that can be set at run time", setting.Name, raw)
	}
	n, exact := settings.In(amount, kinds[s.form], s.form)
	if !exact || n > math.MaxInt32 && s.form != "B" && s.form != "ms" {
		return nil, fmt.Errorf("%s: %s is no whole number of %s, which is all that can be set at run time",
			setting.Name, raw, s.form)
	}
	return n, nil
}

// jsonOf is a YAML value as JSON.
func jsonOf(node *yaml.Node) ([]byte, error) {
	var value any
	if err := node.Decode(&value); err != nil {
		return nil, fmt.Errorf("read value: %w", err)
	}
	return json.Marshal(value)
}

// isHot says whether a change of a setting to a value (nil: to the image's or the default) can be
// made at run time.
func isHot(name string, value *v1alpha1.Value, valueName string, table *settings.Table) bool {
	s, hot := setterOf(name, table.Line)
	if !hot {
		return false
	}
	if value == nil {
		valueName = name
	}
	setting := table.Lookup(valueName)
	if setting == nil {
		return false
	}
	var raw []byte
	if value != nil {
		raw = value.Raw
	} else {
		var known bool
		if raw, known = defaultOf(setting, s.form); !known {
			return false
		}
	}
	_, err := s.convert(setting, raw)
	return err == nil
}
