package v1alpha1

import (
	"bytes"
)

// Settings are keys of cassandra.yaml with any JSON value. A key whose value is null removes what
// would be inherited from a level above, so that the image's own value applies; to change a stored
// object to such a null, apply it with kubectl apply --server-side, since a merge patch cannot say
// it. The keys listed in OwnedSettings are refused by an admission policy.
//
// +kubebuilder:validation:Type=object
// +kubebuilder:validation:Schemaless
// +kubebuilder:pruning:PreserveUnknownFields
type Settings map[string]Value

// Value is one JSON value, kept as it was written: a number keeps its notation and an object the
// order of its keys.
//
// +kubebuilder:validation:Schemaless
// +kubebuilder:pruning:PreserveUnknownFields
type Value struct {
	// Raw is the JSON text. Empty means null.
	Raw []byte `json:"-"`
}

var null = []byte("null")

// IsNull says whether the value is JSON's null.
func (v Value) IsNull() bool { return len(v.Raw) == 0 || bytes.Equal(v.Raw, null) }

// MarshalJSON returns the value as it was written.
func (v Value) MarshalJSON() ([]byte, error) {
	if len(v.Raw) == 0 {
		return null, nil
	}
	return v.Raw, nil
}

// UnmarshalJSON keeps a copy of the text.
func (v *Value) UnmarshalJSON(data []byte) error {
	if bytes.Equal(data, null) {
		v.Raw = nil
		return nil
	}
	v.Raw = bytes.Clone(data)
	return nil
}
