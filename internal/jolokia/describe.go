package jolokia

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
)

// Description is what a bean offers.
type Description struct {
	// Attributes by name.
	Attributes map[string]Attribute
	// Operations with their signatures as Exec wants them, sorted.
	Operations []string
}

// Attribute describes one attribute. Writable false is not a proof: an attribute with a setter and
// no getter is listed so, and can be written.
type Attribute struct {
	Type     string `json:"type"`
	Writable bool   `json:"rw"`
}

// Describe asks what a bean offers.
func (c *Client) Describe(ctx context.Context, mbean string) (Description, error) {
	answer, err := c.Call(ctx, List(mbean))
	if err != nil {
		return Description{}, err
	}
	var listed struct {
		Attributes map[string]Attribute       `json:"attr"`
		Operations map[string]json.RawMessage `json:"op"`
	}
	if err := answer.Decode(&listed); err != nil {
		return Description{}, err
	}
	description := Description{Attributes: listed.Attributes}
	for name, raw := range listed.Operations {
		signatures, err := signaturesOf(name, raw)
		if err != nil {
			return Description{}, fmt.Errorf("list %s: operation %s: %w: %w", mbean, name, ErrProtocol, err)
		}
		description.Operations = append(description.Operations, signatures...)
	}
	sort.Strings(description.Operations)
	return description, nil
}

// signature is one overload of an operation on the wire.
type signature struct {
	Arguments []struct {
		Type string `json:"type"`
	} `json:"args"`
}

// signaturesOf reads the overloads of one operation: an object if there is one, an array if there
// are several.
func signaturesOf(name string, raw json.RawMessage) ([]string, error) {
	var overloads []signature
	if firstByte(raw) == '[' {
		if err := decodeStrictly(raw, &overloads); err != nil {
			return nil, err
		}
	} else {
		overloads = make([]signature, 1)
		if err := decodeStrictly(raw, &overloads[0]); err != nil {
			return nil, err
		}
	}
	names := make([]string, 0, len(overloads))
	for _, overload := range overloads {
		types := make([]string, 0, len(overload.Arguments))
		for _, argument := range overload.Arguments {
			types = append(types, argument.Type)
		}
		names = append(names, name+"("+strings.Join(types, ",")+")")
	}
	return names, nil
}
