package settings

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

//go:embed 4.1.json 5.0.json
var files embed.FS

// Type is the form of a value in cassandra.yaml.
type Type string

// The forms of values.
const (
	Boolean  Type = "boolean"
	Int      Type = "int"
	Long     Type = "long"
	Double   Type = "double"
	String   Type = "string"
	Enum     Type = "enum"     // one of Values
	Duration Type = "duration" // 10s; Unit is the smallest unit that is accepted
	Size     Type = "size"     // 10MiB; Unit likewise
	Rate     Type = "rate"     // 64MiB/s
	List     Type = "list"
	Map      Type = "map"    // free keys; Element is the form of a value
	Object   Type = "object" // the keys of Fields
	Any      Type = "any"
)

// Shape is the form that a value must have.
type Shape struct {
	Type Type `json:"type"`
	// Unit is the smallest unit of a duration, size or rate.
	Unit string `json:"unit,omitempty"`
	// Bound is "int" where Cassandra keeps the value, counted in Unit, in 32 bits.
	Bound string `json:"bound,omitempty"`
	// Values of an enumeration.
	Values []string `json:"values,omitempty"`
	// Element is the form of the elements of a list or the values of a map.
	Element *Shape `json:"element,omitempty"`
	// Fields of an object.
	Fields []Setting `json:"fields,omitempty"`
	// Scalar says that an object may also be written as one word (the class name).
	Scalar bool `json:"scalar,omitempty"`
	// Sequence says that an object may also be written as a list with one mapping.
	Sequence bool `json:"sequence,omitempty"`
}

// Setting is one key of cassandra.yaml (or of an object in it).
type Setting struct {
	Shape
	Name string `json:"name"`
	// Default as one word, of Cassandra itself. Empty where there is none, or none that is one
	// word. cassandra.yaml of the image may differ.
	Default string `json:"default,omitempty"`
	// ReplacedBy is the present name of the setting if Name is an old one. Cassandra accepts either
	// name, not both.
	ReplacedBy string `json:"replacedBy,omitempty"`
	// Converter is the name of Cassandra's conversion from the old form of the value
	// (config/Converters.java).
	Converter string `json:"converter,omitempty"`
	// Plain says that the value may also be a number without a unit.
	Plain Type `json:"plain,omitempty"`
	// Deprecated names and settings still work.
	Deprecated bool `json:"deprecated,omitempty"`
	// Since is the first release of the line that knows it, if that is not the first of all.
	Since string `json:"since,omitempty"`
	// Removed is the first release of the line that does not know it any more.
	Removed string `json:"removed,omitempty"`
}

// Table is what one line of Cassandra knows.
type Table struct {
	// Line is the first two parts of the version: 5.0.
	Line string `json:"line"`
	// Releases that the table was made of, in ascending order. Later ones of the line are taken to
	// know what the last one does.
	Releases []string  `json:"releases"`
	Settings []Setting `json:"settings"`

	byName map[string]*Setting
	names  map[string][]string
}

// tables in ascending order of their lines.
var tables = load()

func load() []*Table {
	lines := []string{"4.1", "5.0"}
	loaded := make([]*Table, 0, len(lines))
	for _, line := range lines {
		raw, err := files.ReadFile(line + ".json")
		if err != nil {
			panic(fmt.Sprintf("read embedded table of settings %s: %v", line, err))
		}
		table := &Table{byName: map[string]*Setting{}, names: map[string][]string{}}
		if err := json.Unmarshal(raw, table); err != nil {
			panic(fmt.Sprintf("parse embedded table of settings %s: %v", line, err))
		}
		for i := range table.Settings {
			s := &table.Settings[i]
			table.byName[s.Name] = s
			table.names[s.Present()] = append(table.names[s.Present()], s.Name)
		}
		loaded = append(loaded, table)
	}
	return loaded
}

// Present is the present name of the setting, also if Name is an old one.
func (s *Setting) Present() string {
	if s.ReplacedBy != "" {
		return s.ReplacedBy
	}
	return s.Name
}

// Lines are the lines of Cassandra there are tables for, in ascending order.
func Lines() []string {
	lines := make([]string, 0, len(tables))
	for _, t := range tables {
		lines = append(lines, t.Line)
	}
	return lines
}

// For returns the table for a version such as 5.0.6 (anything may follow the third part:
// 5.0.6-custom). The error names the lines that are supported.
func For(version string) (*Table, error) {
	line, _, err := parse(version)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		if t.Line == line {
			return t, nil
		}
	}
	//nolint:staticcheck // a name
	return nil, fmt.Errorf("Cassandra %s is not supported: the settings of %s are known", version,
		strings.Join(Lines(), " and "))
}

// parse splits 5.0.6 into the line 5.0 and the number 6 of the release.
func parse(version string) (line string, patch int, err error) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 3 {
		return "", 0, fmt.Errorf("version %q is no release of Cassandra: want three numbers, such as 5.0.6", version)
	}
	digits := parts[2]
	if end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		digits = digits[:end]
	}
	patch, err = strconv.Atoi(digits)
	if err != nil {
		return "", 0, fmt.Errorf("version %q is no release of Cassandra: want three numbers, such as 5.0.6", version)
	}
	return parts[0] + "." + parts[1], patch, nil
}

// Lookup returns the setting with that name, present or old, that the line knows in any of its
// releases; nil if there is none.
func (t *Table) Lookup(name string) *Setting {
	return t.byName[name]
}

// Names are the present name of a setting and all its old ones. A name that is not known is
// returned alone.
func (t *Table) Names(name string) []string {
	s := t.Lookup(name)
	if s == nil {
		return []string{name}
	}
	names := slices.Clone(t.names[s.Present()])
	if !slices.Contains(names, s.Present()) {
		names = append(names, s.Present())
	}
	sort.Strings(names)
	return names
}

// Present is the present name of a setting, also if the name is an old one or not known.
func (t *Table) Present(name string) string {
	if s := t.Lookup(name); s != nil {
		return s.Present()
	}
	return name
}

// KnownIn says whether a release knows the setting, and if not, why not.
func (s *Setting) KnownIn(version string) (bool, string) {
	_, patch, err := parse(version)
	if err != nil {
		return false, err.Error()
	}
	if s.Since != "" {
		if _, since, err := parse(s.Since); err == nil && patch < since {
			return false, fmt.Sprintf("introduced in %s", s.Since)
		}
	}
	if s.Removed != "" {
		if _, removed, err := parse(s.Removed); err == nil && patch >= removed {
			return false, fmt.Sprintf("removed in %s", s.Removed)
		}
	}
	return true, ""
}

// Elsewhere returns the lines, other than this one, that know the name, in ascending order.
func (t *Table) Elsewhere(name string) []string {
	var lines []string
	for _, other := range tables {
		if other.Line != t.Line && other.Lookup(name) != nil {
			lines = append(lines, other.Line)
		}
	}
	return lines
}

// Nearest returns the known name that is closest to a misspelt one, or "" if none is close enough
// to be meant.
func (t *Table) Nearest(name string) string {
	candidates := make([]string, 0, len(t.Settings))
	for i := range t.Settings {
		candidates = append(candidates, t.Settings[i].Name)
	}
	return nearest(name, candidates)
}

func nearest(name string, candidates []string) string {
	best, distance := "", len(name)/3+1
	for _, candidate := range candidates {
		if d := editDistance(name, candidate, distance); d < distance {
			best, distance = candidate, d
		}
	}
	return best
}

// editDistance is the least number of insertions, deletions and substitutions between two names;
// anything from limit upwards is returned as limit.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost = min(diagonal, row[j], row[j-1]) + 1
			}
			diagonal, row[j] = row[j], cost
		}
	}
	return min(row[len(b)], limit)
}
