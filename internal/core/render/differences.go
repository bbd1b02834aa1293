package render

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"helenus.io/helenus/api/v1alpha1"
)

// Differences names the fields in which a node's record differs from what the spec describes, sorted, as paths below spec of the record.
func Differences(record *v1alpha1.CassandraNode, w Wanted) []string {
	var out []string
	out = append(out, differences("configuration", tree(record.Spec.Configuration), tree(w.Configuration))...)
	out = append(out, differences("pod", tree(record.Spec.Pod), tree(w.Pod))...)
	slices.Sort(out)
	return out
}

// differences compares two JSON values down to the deepest objects that both have.
func differences(path string, a, b any) []string {
	x, xIsMap := a.(map[string]any)
	y, yIsMap := b.(map[string]any)
	if !xIsMap || !yIsMap {
		if reflect.DeepEqual(a, b) {
			return nil
		}
		return []string{path}
	}
	var out []string
	for key, value := range x {
		out = append(out, differences(path+"."+key, value, y[key])...)
	}
	for key := range y {
		if _, both := x[key]; !both {
			out = append(out, path+"."+key)
		}
	}
	return out
}

func tree(v any) any {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err)) // only API types, which come from JSON: cannot happen
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		panic(fmt.Sprintf("decode %T: %v", v, err))
	}
	return out
}
