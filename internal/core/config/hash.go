package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config/settings"
)

// Hash identifies what the JVM was started with: the user's settings, JVM options and environment,
// the restart that was asked for last, and the revision of the rules they are rendered by. It is 64
// hexadecimal digits. Spelling does not count: 4Gi and 4096Mi, the order of keys and of variables,
// and a default that is written out are the same.
//
// Not part of it are what can change without the user (seeds, addresses, directories, credentials,
// tickets, client traffic), what never changes (names, tokens), and the version and the memory
// limit, whose changes come with a new pod.
//
// The function belongs to the revisions: for an existing one its result never changes, or every
// node would restart.
func Hash(configuration *v1alpha1.NodeConfiguration) (string, error) {
	input, err := canonicalOf(configuration)
	if err != nil {
		return "", fmt.Errorf("hash configuration: %w", err)
	}
	text, err := json.Marshal(input)
	if err != nil {
		return "", fmt.Errorf("hash configuration: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// canonical is the hashed form. Its field names and their order are part of the revision.
type canonical struct {
	Revision      int32                      `json:"revision"`
	CassandraYaml map[string]json.RawMessage `json:"cassandraYaml"` // encoding/json sorts the keys
	Heap          int64                      `json:"heap"`          // bytes, 0 for the default
	Options       []string                   `json:"options"`
	GCLog         v1alpha1.GCLog             `json:"gcLog"`
	Environment   map[string]string          `json:"environment"`
	ClassPath     []string                   `json:"classPath,omitempty"`
	RestartedAt   string                     `json:"restartedAt,omitempty"` // RFC 3339, in UTC
}

func canonicalOf(c *v1alpha1.NodeConfiguration) (*canonical, error) {
	out := &canonical{
		Revision:      c.Revision,
		CassandraYaml: map[string]json.RawMessage{},
		Options:       []string{},
		GCLog:         gcLogOf(c.JVM),
		Environment:   map[string]string{},
	}
	for name, value := range c.CassandraYaml {
		if value.IsNull() {
			continue
		}
		text, err := canonicalJSON(value.Raw)
		if err != nil {
			return nil, fmt.Errorf("cassandraYaml.%s: %w", name, err)
		}
		out.CassandraYaml[name] = text
	}
	if c.JVM != nil {
		if c.JVM.Heap != nil {
			out.Heap = c.JVM.Heap.Value()
		}
		out.Options = append(out.Options, c.JVM.Options...)
		out.ClassPath = c.JVM.ClassPath
	}
	for _, v := range c.Environment {
		out.Environment[v.Name] = v.Value
	}
	if c.RestartedAt != nil {
		out.RestartedAt = c.RestartedAt.UTC().Format(time.RFC3339)
	}
	return out, nil
}

// canonicalJSON writes a value with sorted keys, without white space and nulls in mappings, and
// with numbers as they were written.
func canonicalJSON(raw []byte) ([]byte, error) {
	value, err := decodeJSON(raw)
	if err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// decodeJSON reads one value, without nulls in mappings, and with numbers as they were written.
func decodeJSON(raw []byte) (any, error) {
	value, err := settings.Decode(raw)
	if err != nil {
		return nil, fmt.Errorf("parse JSON value: %w", err)
	}
	return withoutNulls(value), nil
}

func withoutNulls(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, element := range v {
			if element == nil {
				delete(v, key)
				continue
			}
			v[key] = withoutNulls(element)
		}
	case []any:
		for i := range v {
			v[i] = withoutNulls(v[i])
		}
	}
	return value
}
