package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

// edit applies settings given as JSON values; null removes.
func edit(t testing.TB, base string, changes map[string]string) (string, error) {
	t.Helper()
	document, err := parseDocument([]byte(base))
	if err != nil {
		return "", err
	}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		if changes[name] == "null" {
			document.remove(name)
			continue
		}
		document.set(name, mustNode(t, changes[name]))
	}
	out, err := document.bytes()
	return strings.TrimPrefix(string(out), heading), err
}

func TestEdit(t *testing.T) {
	tests := []struct {
		name, base string
		changes    map[string]string
		want       string
	}{
		{"comments go, scalars stay as written", "# top\na: 'x' # why\nb: 0x10\nc: yes\nd: 010\n# end\n", nil,
			"a: 'x'\nb: 0x10\nc: yes\nd: 010\n"},
		{"a value", "a: 1\nb: 2\n", map[string]string{"a": "3"}, "a: 3\nb: 2\n"},
		{"a block", "a:\n  x: 1\n  y: 2\n\nb: 2\n", map[string]string{"a": `{"z": [1]}`},
			"a:\n  \"z\":\n    - 1\nb: 2\n"},
		{"a list without indent", "a:\n- 1\n- 2\nb: 2\n", map[string]string{"a": "[]"}, "a: []\nb: 2\n"},
		{"removal", "a: 1\nb:\n  - 1\nc: 3\n", map[string]string{"b": "null"}, "a: 1\nc: 3\n"},
		{"removal of what is not there", "a: 1\n", map[string]string{"b": "null"}, "a: 1\n"},
		{"a new key goes to the end", "a: 1", map[string]string{"second": "2"}, "a: 1\nsecond: 2\n"},
		{"an empty document", "# nothing yet\n", map[string]string{"second": "2"}, "second: 2\n"},
		{"null", "---\n~\n", map[string]string{"second": "2"}, "second: 2\n"},
		{"braces and marks", "---\n{a: 1, b: 2}\n...\n", map[string]string{"a": "3"}, "{a: 3, b: 2}\n"},
		{"line ends of Windows", "a: 1\r\nb: 2\r\n", map[string]string{"b": "3"}, "a: 1\nb: 3\n"},
		{"words that YAML 1.1 reads otherwise", "a: 1\n",
			map[string]string{
				"a": `["yes", "False", "010", "1:30", "~", "", " x", "null", "1e3", "0x1F", "2001-01-01", "a: b", "# c",
					"<<", "10ms", "/a/b", "LZ4Compressor"]`,
			},
			"a:\n" + `  - "yes"` + "\n" + `  - "False"` + "\n" + `  - "010"` + "\n" + `  - "1:30"` + "\n" +
				`  - "~"` + "\n" + `  - ""` + "\n" + `  - " x"` + "\n" + `  - "null"` + "\n" +
				`  - "1e3"` + "\n" + `  - "0x1F"` + "\n" + `  - "2001-01-01"` + "\n" + `  - "a: b"` + "\n" +
				`  - "# c"` + "\n" + `  - "<<"` + "\n  - 10ms\n  - /a/b\n  - LZ4Compressor\n"},
		{"numbers", "a: 1\n", map[string]string{"a": `[1e3, 1.5E-7, -0, 12345678901234567890, 18446744073709552000]`},
			"a:\n  - 1.0e+3\n  - 1.5e-7\n  - -0\n  - 12345678901234567890\n  - 18446744073709552000\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := edit(t, test.base, test.changes)
			if err != nil {
				t.Fatal(err)
			}
			if got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func TestDocumentsThatAreRefused(t *testing.T) {
	for base, want := range map[string]string{
		"- a\n- b\n":                "no mapping",
		"a: 1\na: 2\n":              `mapping key "a" already defined`,
		"a: &x 1\nb: *x\n":          "anchors and aliases are not supported",
		"a: 1\n---\nb: 2\n":         "more than one document",
		"a: [1\n":                   "line 1",
		"? [x]\n: 1\n":              "cannot unmarshal !!seq",
		"a: 1\n...\nno mapping\n":   "more than one document",
		"# only\n---\n- not this\n": "no mapping",
	} {
		_, err := edit(t, base, map[string]string{"a": "2"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v; want %q", base, err, want)
		}
	}
}

func TestMergeKeepsWhatIsNotNamed(t *testing.T) {
	base := mustNode(t, `{"a": {"x": 1, "y": [1, 2]}, "b": 2}`)
	user := mustNode(t, `{"a": {"y": [3], "z": {"n": 1}}, "c": "d"}`)
	want := mustNode(t, `{"a": {"x": 1, "y": [3], "z": {"n": 1}}, "b": 2, "c": "d"}`)
	if got := merge(base, user); !sameValue(got, want) {
		t.Errorf("merged to %s", mustJSON(t, got))
	}
}

// sameValue compares two values by meaning: quotes and style do not count.
func sameValue(a, b *yaml.Node) bool {
	if a.Kind != b.Kind || len(a.Content) != len(b.Content) {
		return false
	}
	if a.Kind == yaml.ScalarNode {
		return a.ShortTag() == b.ShortTag() && (a.Value == b.Value || a.ShortTag() == "!!null")
	}
	for i := range a.Content {
		other := b.Content[i]
		if a.Kind == yaml.MappingNode && i%2 == 1 {
			other = lookup(b, a.Content[i-1].Value)
		} else if a.Kind == yaml.MappingNode {
			continue
		}
		if other == nil || !sameValue(a.Content[i], other) {
			return false
		}
	}
	return true
}

func mustNode(t testing.TB, text string) *yaml.Node {
	t.Helper()
	node, err := yamlOfJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return node
}

func mustJSON(t testing.TB, node *yaml.Node) string {
	t.Helper()
	raw, err := jsonOf(node)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// valueGenerator makes JSON values with the strings that YAML could misread.
func valueGenerator(depth int) *rapid.Generator[any] {
	word := rapid.OneOf(
		rapid.SampledFrom([]string{"", "yes", "No", "~", "null", "010", "1:30", "1e3", "0o7", "<<", "=", "- a", "a: b",
			"#c", "x\ny", "x\n", " lead", "trail ", "ü☃", "\ttab", "'", "\"", "10s", "%x", "@a", "`", "|", ">", "&a",
			"*a", "!t", "a,b", "{", "[", "?", ":"}),
		rapid.String(),
	)
	scalar := rapid.OneOf(
		rapid.Map(word, func(s string) any { return s }),
		rapid.Map(rapid.Int64(), func(n int64) any { return n }),
		rapid.Map(rapid.Float64Range(-1e300, 1e300), func(n float64) any { return n }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
	)
	if depth == 0 {
		return scalar
	}
	return rapid.OneOf(
		scalar,
		rapid.Map(rapid.SliceOfN(valueGenerator(depth-1), 0, 3), func(l []any) any { return l }),
		rapid.Map(rapid.MapOfN(word, valueGenerator(depth-1), 0, 3), func(m map[string]any) any { return m }),
	)
}

// Whatever is set reads back as it was given, and every other key of the base keeps its value.
func TestEditProperty(t *testing.T) {
	base := baseOf(t, "5.0")[CassandraYAML]
	rapid.Check(t, func(r *rapid.T) {
		document, err := parseDocument(base)
		if err != nil {
			r.Fatal(err)
		}
		names := rapid.OneOf(rapid.SampledFrom(namesOf(document)), rapid.StringMatching(`[a-z][a-z_]{0,20}`))
		values := rapid.MapOfN(names, valueGenerator(2), 0, 8).Draw(r, "changes")
		var wanted map[string]any
		if err := yaml.Unmarshal(base, &wanted); err != nil {
			r.Fatal(err)
		}
		for name := range values {
			raw, err := json.Marshal(values[name])
			if err != nil {
				r.Fatal(err)
			}
			node, err := yamlOfJSON(raw)
			if err != nil {
				r.Fatal(err)
			}
			document.set(name, node)
			var value any
			if err := json.Unmarshal(raw, &value); err != nil {
				r.Fatal(err)
			}
			wanted[name] = value
		}
		out, err := document.bytes()
		if err != nil {
			r.Fatal(err)
		}
		var got map[string]any
		if err := yaml.Unmarshal(out, &got); err != nil {
			r.Fatal(err)
		}
		if a, b := fmt.Sprintf("%#v", normal(got)), fmt.Sprintf("%#v", normal(wanted)); a != b {
			r.Fatalf("read back\n%s\nwant\n%s\nfrom\n%s", a, b, out)
		}
	})
}

// normal makes values of YAML and of JSON comparable: all numbers are floating point.
func normal(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, element := range v {
			out[key] = normal(element)
		}
		return out
	case []any:
		out := []any{}
		for _, element := range v {
			out = append(out, normal(element))
		}
		return out
	case float64:
		if v == 0 {
			return 0.0 // -0 is an integer to YAML
		}
		return v
	case int:
		return float64(v)
	case int64:
		return float64(v)
	case uint64:
		return float64(v)
	default:
		return v
	}
}

func namesOf(d *document) []string {
	names := make([]string, len(d.root.Content)/2)
	for i := range names {
		names[i] = d.root.Content[2*i].Value
	}
	return names
}

// FuzzDocument edits any text: it is refused, or the result holds the change and all else.
func FuzzDocument(f *testing.F) {
	for _, line := range both {
		f.Add(baseOf(f, line)[CassandraYAML], "concurrent_reads", []byte(`64`))
	}
	f.Add([]byte("a: |\n # x\nb: >-\n  y\n\n  z\n"), "a", []byte(`{"k": ["v", null]}`))
	f.Add([]byte("a:\n- b: 1\n  c: 2\n# a: 3\n"), "c", []byte(`"x"`))
	f.Add([]byte("\"a\": 1\n'b': 2\n? c\n"), "b", []byte(`true`))
	f.Fuzz(func(t *testing.T, base []byte, name string, value []byte) {
		before, err := parseDocument(base)
		if err != nil {
			return
		}
		document, err := parseDocument(base)
		if err != nil {
			t.Fatal(err)
		}
		node, err := yamlOfJSON(value)
		if err != nil {
			return
		}
		document.set(name, node)
		out, err := document.bytes()
		if err != nil {
			return
		}
		again, err := parseDocument(out)
		if err != nil {
			t.Fatalf("the edited document is refused: %v\n%s", err, out)
		}
		if got := again.value(name); got == nil || !sameValue(got, node) {
			t.Fatalf("%s is not what was set:\n%s", name, out)
		}
		for _, other := range namesOf(before) {
			if got := again.value(other); other != name && (got == nil || !sameValue(before.value(other), got)) {
				t.Fatalf("%s changed:\n%s\nto\n%s", other, base, out)
			}
		}
	})
}
