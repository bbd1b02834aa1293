package settings

import (
	"archive/zip"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// Setting is one setting of cassandra.yaml.
type Setting struct {
	Name string `json:"name"`
	// Type is the Java type, without package.
	Type string `json:"type"`
	// Deprecated says that Cassandra warns about it.
	Deprecated bool `json:"deprecated,omitempty"`
	// ReplacedBy is the setting that an old name stands for.
	ReplacedBy string `json:"replacedBy,omitempty"`
	// Converter is Cassandra's name for how an old value becomes a new one.
	Converter string `json:"converter,omitempty"`
}

// Read returns all settings that the Cassandra in the jar file knows, old names
// included, sorted by name: the public fields of its class Config, which its
// YAML loader fills, and what their annotations say about older names.
func Read(jar string) ([]Setting, error) {
	archive, err := zip.OpenReader(jar)
	if err != nil {
		return nil, fmt.Errorf("open jar of Cassandra: %w", err)
	}
	defer func() { _ = archive.Close() }()
	file, err := archive.Open("org/apache/cassandra/config/Config.class")
	if err != nil {
		return nil, fmt.Errorf("read class Config: %w", err)
	}
	defer func() { _ = file.Close() }()
	class, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("read class Config: %w", err)
	}
	fields, err := readFields(class)
	if err != nil {
		return nil, fmt.Errorf("read class Config: %w", err)
	}
	return fromFields(fields), nil
}

func fromFields(fields []field) []Setting {
	var settings []Setting
	for _, f := range fields {
		if f.flags&flagPublic == 0 || f.flags&(flagStatic|flagTransient) != 0 {
			continue
		}
		s := Setting{Name: f.name, Type: typeName(f.descriptor)}
		var old []Setting
		for _, a := range f.annotations {
			switch a.kind {
			case "Ljava/lang/Deprecated;":
				s.Deprecated = true
			case "Lorg/apache/cassandra/config/Replaces;":
				old = append(old, oldName(a, s))
			case "Lorg/apache/cassandra/config/ReplacesList;":
				list, _ := a.values["value"].([]any)
				for _, element := range list {
					if a, ok := element.(annotation); ok {
						old = append(old, oldName(a, s))
					}
				}
			}
		}
		settings = append(settings, s)
		for _, o := range old {
			// Some old names are those of today, with another type.
			if o.Name != s.Name {
				settings = append(settings, o)
			}
		}
	}
	slices.SortFunc(settings, func(a, b Setting) int { return cmp.Compare(a.Name, b.Name) })
	return settings
}

func oldName(a annotation, s Setting) Setting {
	old := Setting{ReplacedBy: s.Name, Type: s.Type}
	old.Name, _ = a.values["oldName"].(string)
	old.Converter, _ = a.values["converter"].(string)
	old.Deprecated, _ = a.values["deprecated"].(bool)
	return old
}

var primitives = map[string]string{"Z": "boolean", "I": "int", "J": "long", "D": "double", "F": "float"}

func typeName(descriptor string) string {
	if elements, ok := strings.CutPrefix(descriptor, "["); ok {
		return typeName(elements) + "[]"
	}
	if name, ok := primitives[descriptor]; ok {
		return name
	}
	name := strings.TrimSuffix(strings.TrimPrefix(descriptor, "L"), ";")
	return name[strings.LastIndex(name, "/")+1:]
}

// written matches a setting at the top level of cassandra.yaml, in force or
// offered in a comment.
var written = regexp.MustCompile(`(?m)^(?:# ?)?([a-z][a-z0-9_]*):(?:\s|$)`)

// Unknown returns the settings in the text of a cassandra.yaml, in force or
// offered in a comment, that are not among known.
func Unknown(yaml []byte, known []Setting) []string {
	names := map[string]bool{}
	for _, s := range known {
		names[s.Name] = true
	}
	var unknown []string
	for _, match := range written.FindAllSubmatch(yaml, -1) {
		if name := string(match[1]); !names[name] && !slices.Contains(unknown, name) {
			unknown = append(unknown, name)
		}
	}
	return unknown
}
