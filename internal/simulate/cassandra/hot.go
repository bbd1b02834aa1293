package cassandra

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"helenus.io/helenus/test/hotsettings"
)

// hotSettings are the values of settings that change at run time, by key, in the canonical form of
// hotsettings.Setting: whole milliseconds, bytes, or bytes per second. They begin as the file has
// them and are lost with the JVM.
type hotSettings map[string]string

const off = "null"

// hotAttribute is an attribute under which a bean shows or takes a setting.
type hotAttribute struct {
	setting  hotsettings.Setting
	unit     int64
	readable bool
	writable bool
}

var (
	hotAttributes = map[attributeName]hotAttribute{}
	// thresholds are the operations that set both halves of a guardrail.
	thresholds = map[string][2]string{}
	hotByKey   = map[string]hotsettings.Setting{}
)

func init() {
	for _, s := range hotsettings.All() {
		hotByKey[s.Key] = s
		if s.Attribute != "" {
			hotAttributes[attributeName{s.Bean, s.Attribute}] = hotAttribute{setting: s, unit: s.ReadUnit,
				readable: true, writable: s.Write == s.Attribute && s.Operation == ""}
		}
		if s.Write != s.Attribute && s.Write != "" {
			hotAttributes[attributeName{s.Bean, s.Write}] = hotAttribute{setting: s, unit: s.Unit,
				readable: s.Attribute != "", writable: true}
		}
		if s.Operation != "" {
			thresholds[s.Operation] = s.PairKeys
		}
	}
	// Names that 5.0 has beside the older ones.
	for name, key := range map[string]string{"BatchSizeWarnThresholdInKiB": "batch_size_warn_threshold",
		"ColumnIndexSizeInKiB": "column_index_size"} {
		s := hotByKey[key]
		hotAttributes[attributeName{s.Bean, name}] = hotAttribute{setting: s, unit: 1 << 10, readable: true,
			writable: true}
	}
}

// defaults of settings where another value than that of their form would surprise.
var hotDefaults = hotSettings{
	"max_hint_window": "10800000", "phi_convict_threshold": "8", "compaction_throughput": "67108864",
	"tombstone_warn_threshold":    "1000",
	"tombstone_failure_threshold": "100000", "concurrent_compactors": "2", "paxos_variant": "v1",
	"default_keyspace_rf":     "1",
	"zero_ttl_on_twcs_warned": "false", "intersect_filtering_query_warned": "false",
}

// loadHot takes the values of the file.
func (p *Process) loadHot() {
	p.hot = hotSettings{}
	for key, text := range p.settings.yaml.values {
		if s, known := hotByKey[key]; known && text != "" {
			if canonical, err := s.Canonical(text); err == nil {
				p.hot[key] = canonical
			}
		}
	}
}

// hotValue is the present value of a setting.
func (p *Process) hotValue(s hotsettings.Setting) string {
	if v, found := p.hot[s.Key]; found {
		return v
	}
	if v, found := hotDefaults[s.Key]; found {
		return v
	}
	switch {
	case s.Operation != "" && s.Form == hotsettings.FormInteger:
		return "-1"
	case s.Form == hotsettings.FormSizeText:
		return off
	case s.Form == hotsettings.FormBoolean:
		return "true"
	case s.Form == hotsettings.FormText, s.Form == hotsettings.FormList:
		return ""
	case s.Form == hotsettings.FormDuration:
		return "10000"
	case s.Form == hotsettings.FormSize, s.Form == hotsettings.FormRate:
		return strconv.Itoa(24 << 20)
	default:
		return "128"
	}
}

func (p *Process) hotInteger(key string) int64 {
	v, err := strconv.ParseInt(p.hotValue(hotByKey[key]), 10, 64)
	if err != nil {
		return 0
	}
	return v
}

// findHot looks an attribute up in the release.
func (p *Process) findHot(bean, name string) (hotAttribute, bool) {
	a, found := hotAttributes[attributeName{bean, name}]
	if found {
		_, found = hotsettings.Lookup(a.setting.Key, p.release)
	}
	return a, found
}

// readHot writes an attribute as its bean does; false if there is none.
func (p *Process) readHot(out []byte, bean, name string) ([]byte, bool) {
	a, found := p.findHot(bean, name)
	if !found || !a.readable {
		return out, false
	}
	value := p.hotValue(a.setting)
	switch a.setting.Form {
	case hotsettings.FormText, hotsettings.FormList:
		return appendText(out, value), true
	case hotsettings.FormSizeText:
		if value == off {
			return append(out, "null"...), true
		}
		return appendText(out, value+"B"), true
	case hotsettings.FormBoolean, hotsettings.FormNumber, hotsettings.FormInteger:
		return append(out, value...), true
	default:
		if value == off {
			return append(out, "-1"...), true
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return out, false
		}
		if n%a.unit != 0 && strings.HasSuffix(name, "AsDouble") {
			return strconv.AppendFloat(out, float64(n)/float64(a.unit), 'g', -1, 64), true
		}
		return strconv.AppendInt(out, n/a.unit, 10), true
	}
}

// writeHot sets an attribute and writes what it was.
func (p *Process) writeHot(out []byte, bean, name string, value json.RawMessage) ([]byte, *javaError) {
	a, found := p.findHot(bean, name)
	if !found {
		return out, exception(attributeNotFound, "No such attribute: %s", name)
	}
	if !a.writable {
		return out, exception(attributeNotFound, "Read-only attribute: %s", name)
	}
	canonical, failed := a.parse(value)
	if failed != nil {
		return out, failed
	}
	if before, readable := p.readHot(out, bean, name); readable {
		out = before
	} else {
		out = append(out, "null"...)
	}
	p.hot[a.setting.Key] = canonical
	return out, nil
}

// parse reads a value as the bean takes it.
func (a hotAttribute) parse(value json.RawMessage) (string, *javaError) {
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return "", exception(illegalArgument, "%v", err)
	}
	s := a.setting
	switch s.Form { //nolint:exhaustive // all others are taken as they are
	case hotsettings.FormDuration, hotsettings.FormSize, hotsettings.FormRate:
		n, isNumber := v.(float64)
		if !isNumber || n != math.Trunc(n) {
			return "", exception("java.lang.NumberFormatException", "For input string: %s", value)
		}
		return strconv.FormatInt(int64(n)*a.unit, 10), nil
	case hotsettings.FormInteger, hotsettings.FormNumber:
		if _, isNumber := v.(float64); !isNumber {
			return "", exception("java.lang.NumberFormatException", "For input string: %s", value)
		}
	}
	canonical, err := s.Canonical(v)
	if err != nil {
		return "", exception(illegalArgument, "%v", err)
	}
	return canonical, nil
}

// guardrailOperation is the setter of a pair of thresholds.
func (p *Process) guardrailOperation(r *request) (operation, bool) {
	keys, found := thresholds[r.Operation]
	if !found || r.MBean != beanGuardrails {
		return operation{}, false
	}
	if _, here := hotsettings.Lookup(keys[0], p.release); !here {
		return operation{}, false
	}
	return operation{name: r.Operation, call: func(p *Process, arguments []json.RawMessage) (json.RawMessage,
		*javaError) {
		if len(arguments) != len(keys) {
			return nil, exception(illegalArgument, "%d arguments given", len(arguments))
		}
		var values [2]string
		for i, key := range keys {
			var failed *javaError
			if values[i], failed = (hotAttribute{setting: hotByKey[key], unit: 1}).parse(arguments[i]); failed != nil {
				return nil, failed
			}
		}
		warn, warnErr := strconv.ParseInt(values[0], 10, 64)
		fail, failErr := strconv.ParseInt(values[1], 10, 64)
		if warnErr == nil && failErr == nil && warn >= 0 && fail >= 0 && fail < warn {
			return nil, exception(illegalArgument, "The warn threshold %d for %s should be lower than the fail "+
				"threshold %d", warn, keys[0], fail)
		}
		p.hot[keys[0]], p.hot[keys[1]] = values[0], values[1]
		return jsonNull, nil
	}}, true
}
