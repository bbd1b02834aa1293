package jolokia

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Request is one element of a bulk request. Build it with Read, Write or Exec.
type Request struct {
	Type      string          `json:"type"`
	MBean     string          `json:"mbean,omitempty"`
	Attribute any             `json:"attribute,omitempty"`
	Operation string          `json:"operation,omitempty"`
	Arguments []any           `json:"arguments,omitempty"`
	Value     json.RawMessage `json:"value,omitempty"`
	Path      string          `json:"path,omitempty"`

	// invalid holds what is wrong with the arguments of the constructor; Client.Do refuses the
	// request with it.
	invalid error
}

// Types of requests.
const (
	typeRead  = "read"
	typeWrite = "write"
	typeExec  = "exec"
)

// Read reads attributes of a bean. The value of the answer is an object with one key per attribute,
// also when there is only one.
//
// One attribute that the bean does not have, or that throws, fails the whole request: attributes
// that only some releases of the server have belong in a request of their own.
func Read(mbean string, attributes ...string) Request {
	r := Request{Type: typeRead, MBean: mbean, Attribute: attributes}
	if mbean == "" || len(attributes) == 0 {
		r.invalid = fmt.Errorf("read of bean %q: name a bean and at least one attribute", mbean)
	}
	return r
}

// ReadPath reads the part of one attribute that path selects, such as "*/totalRxBytes" of a list of
// objects. Components are separated by "/"; a "/" inside one is written "!/".
func ReadPath(mbean, attribute, path string) Request {
	r := Request{Type: typeRead, MBean: mbean, Attribute: attribute, Path: path}
	if mbean == "" || attribute == "" || path == "" {
		r.invalid = fmt.Errorf("read of bean %q attribute %q path %q: none may be empty", mbean, attribute, path)
	}
	return r
}

// Write sets an attribute. The value of the answer is the value that the attribute had before.
func Write(mbean, attribute string, value any) Request {
	r := Request{Type: typeWrite, MBean: mbean, Attribute: attribute}
	if mbean == "" || attribute == "" {
		r.invalid = fmt.Errorf("write to bean %q attribute %q: neither may be empty", mbean, attribute)
		return r
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		r.invalid = fmt.Errorf("encode value for attribute %q of %s: %w", attribute, mbean, err)
		return r
	}
	r.Value = encoded
	return r
}

// Exec calls an operation. The operation is named with its signature, such as "drain()" or
// "rebuild(java.lang.String)": a name alone is refused by the server as soon as a later release
// adds an overload.
func Exec(mbean, operation string, arguments ...any) Request {
	r := Request{Type: typeExec, MBean: mbean, Operation: operation, Arguments: arguments}
	open := strings.IndexByte(operation, '(')
	if mbean == "" || open < 1 || !strings.HasSuffix(operation, ")") {
		r.invalid = fmt.Errorf("call of operation %q of bean %q: name a bean, and the operation with its signature, "+
			"such as drain()", operation, mbean)
		return r
	}
	if want := countParameters(operation[open+1 : len(operation)-1]); want != len(arguments) {
		r.invalid = fmt.Errorf("call of operation %s of %s: %d arguments given, the signature has %d", operation, mbean,
			len(arguments), want)
	}
	return r
}

// countParameters counts the Java types in the text between the parentheses of a signature.
func countParameters(signature string) int {
	if signature == "" {
		return 0
	}
	return strings.Count(signature, ",") + 1
}

// changesNothing says whether the request can be sent twice without harm.
func (r Request) changesNothing() bool {
	return r.Type != typeExec && r.Type != typeWrite
}

// String names the request in errors: what is asked of which bean.
func (r Request) String() string {
	switch r.Type {
	case typeRead:
		if attributes, ok := r.Attribute.([]string); ok {
			return fmt.Sprintf("read %s %s", r.MBean, strings.Join(attributes, ","))
		}
		return fmt.Sprintf("read %s %v", r.MBean, r.Attribute)
	case typeWrite:
		return fmt.Sprintf("write %s %v", r.MBean, r.Attribute)
	case typeExec:
		return fmt.Sprintf("call %s %s", r.MBean, r.Operation)
	default:
		return r.Type
	}
}
