package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// nodeOfJSON makes a YAML value of a JSON one, with the order of its keys and the notation of its
// numbers. Keys whose value is null are left out.
func nodeOfJSON(raw []byte) (*yaml.Node, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	node, err := nextNode(decoder)
	if err != nil {
		return nil, fmt.Errorf("parse JSON value: %w", err)
	}
	if decoder.More() {
		return nil, fmt.Errorf("parse JSON value: more than one value")
	}
	return node, nil
}

func nextNode(decoder *json.Decoder) (*yaml.Node, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return mappingNode(decoder)
		}
		return sequenceNode(decoder)
	case string:
		return stringNode(t), nil
	case json.Number:
		return numberNode(t.String()), nil
	case bool:
		return boolNode(t), nil
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
	}
}

func mappingNode(decoder *json.Decoder) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		value, err := nextNode(decoder)
		if err != nil {
			return nil, err
		}
		if value.Tag == "!!null" {
			continue
		}
		setKey(node, key.(string), value)
	}
	_, err := decoder.Token()
	return node, err
}

func sequenceNode(decoder *json.Decoder) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for decoder.More() {
		value, err := nextNode(decoder)
		if err != nil {
			return nil, err
		}
		node.Content = append(node.Content, value)
	}
	_, err := decoder.Token()
	return node, err
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

// numberNode is a number as it was written, but with the point and the sign before an exponent
// (1.0e+3) that YAML 1.1 demands. The tag is left to what the text says.
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

func boolNode(b bool) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(b)}
}

// merge returns the value of the image with the user's on top: mappings by key, everything else
// replaced. Comments inside the image's value stay.
func merge(base, user *yaml.Node) *yaml.Node {
	if base == nil || base.Kind != yaml.MappingNode || user.Kind != yaml.MappingNode {
		return user
	}
	merged := withoutFootComments(base)
	for i := 0; i+1 < len(user.Content); i += 2 {
		key := user.Content[i].Value
		setKey(merged, key, merge(lookup(base, key), user.Content[i+1]))
	}
	return merged
}

// withoutFootComments copies a value. The library takes comments that follow a value, up to the
// next key, for a part of it; in the file they stay.
func withoutFootComments(node *yaml.Node) *yaml.Node {
	clone := *node
	clone.FootComment = ""
	clone.Content = make([]*yaml.Node, len(node.Content))
	for i, child := range node.Content {
		clone.Content[i] = withoutFootComments(child)
	}
	return &clone
}
