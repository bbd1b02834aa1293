package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// yamlOfJSON makes a YAML value of a JSON one, with the notation of its numbers. Keys whose value
// is null are left out.
func yamlOfJSON(raw []byte) (*yaml.Node, error) {
	value, err := decodeJSON(raw)
	if err != nil {
		return nil, err
	}
	return yamlOf(value), nil
}

func yamlOf(value any) *yaml.Node {
	switch v := value.(type) {
	case map[string]any:
		node := &yaml.Node{Kind: yaml.MappingNode}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			node.Content = append(node.Content, stringNode(key), yamlOf(v[key]))
		}
		return node
	case []any:
		node := &yaml.Node{Kind: yaml.SequenceNode}
		for _, element := range v {
			node.Content = append(node.Content, yamlOf(element))
		}
		return node
	case string:
		return stringNode(v)
	case json.Number:
		return numberNode(v.String())
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}
	default: // a number of the renderer, or a boolean
		return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(v)}
	}
}

// numberNode is a number as it was written, but with the point and the sign before an exponent
// (1.0e+3) that YAML 1.1 demands.
func numberNode(text string) *yaml.Node {
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		mantissa, exponent := text[:at], text[at+1:]
		if !strings.Contains(mantissa, ".") {
			mantissa += ".0"
		}
		if exponent[0] != '+' && exponent[0] != '-' {
			exponent = "+" + exponent
		}
		text = mantissa + "e" + exponent
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: text}
}

// plainWord are strings that every version of YAML reads as themselves without quotes: paths,
// quantities, and words longer than any that has a meaning (yes, null, false).
var plainWord = regexp.MustCompile(`^(/[A-Za-z0-9_./-]*|[A-Za-z][A-Za-z0-9_.]{5,}|[0-9]+(ms|[smhd]|[KMG]iB(/s)?))$`)

// stringNode is a string that every YAML parser reads as a string.
func stringNode(text string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	if !plainWord.MatchString(text) {
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
}

// lookup returns the value of a key in a mapping, nil if it is not there.
func lookup(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// setKey sets a key of a mapping in its place, or adds it at the end.
func setKey(mapping *yaml.Node, key string, value *yaml.Node) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			mapping.Content[i+1] = value
			return
		}
	}
	mapping.Content = append(mapping.Content, stringNode(key), value)
}

// merge returns the value of the image with the user's on top: mappings by key, everything else
// replaced.
func merge(base, user *yaml.Node) *yaml.Node {
	if base == nil || base.Kind != yaml.MappingNode || user.Kind != yaml.MappingNode {
		return user
	}
	for i := 0; i+1 < len(user.Content); i += 2 {
		key := user.Content[i].Value
		setKey(base, key, merge(lookup(base, key), user.Content[i+1]))
	}
	return base
}
