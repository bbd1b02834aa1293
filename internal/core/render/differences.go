package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"helenus.io/helenus/api/v1alpha1"
)

// Difference is one field that a node's record has otherwise than the spec describes it.
type Difference struct {
	// Field as the user writes it, below spec of the cluster: version, node.jvm.heap.
	Field string
	// Have is the value that the node has, Want the one of the spec, as JSON; "unset" where there
	// is none.
	Have, Want string
}

// String names the field with the old and the new value.
func (d Difference) String() string { return fmt.Sprintf("%s: %s → %s", d.Field, d.Have, d.Want) }

// Differences are the fields in which a node's record differs from what the spec describes, sorted
// by field.
func Differences(record *v1alpha1.CassandraNode, w Wanted) []Difference {
	// say where an image comes from and what it was, which is not the user's business
	w.Pod.ImageDefaulted, w.Pod.ImageDigest = record.Spec.Pod.ImageDefaulted, record.Spec.Pod.ImageDigest
	var out []Difference
	out = append(out, differences("configuration", tree(record.Spec.Configuration), tree(w.Configuration))...)
	out = append(out, differences("pod", tree(record.Spec.Pod), tree(w.Pod))...)
	slices.SortFunc(out, func(a, b Difference) int { return cmp.Compare(a.Field, b.Field) })
	return out
}

// Fields are the names of the fields of differences.
func Fields(all []Difference) []string {
	out := make([]string, len(all))
	for i, d := range all {
		out[i] = d.Field
	}
	return out
}

// EphemeralSize is the one field of storage that comes with a new pod, and unset stands for no
// value.
const EphemeralSize, unset = "node.storage.ephemeral.sizeLimit", "unset"

// Fixed are those of the differences that no roll-out can bring about.
func Fixed(all []Difference) []Difference {
	return slices.DeleteFunc(all, func(d Difference) bool {
		storage := strings.HasPrefix(d.Field, "node.storage") &&
			(d.Field != EphemeralSize || d.Have == unset || d.Want == unset)
		return !storage && !slices.Contains([]string{"clusterName", "datacenters[].datacenterName",
			"datacenters[].racks[].rackName", "datacenters[].numTokens"}, d.Field)
	})
}

// RulesOfConfiguration are what Helenus itself sets in the files of a node, as a user reads of
// them.
const RulesOfConfiguration = "rules of Helenus for configuration"

// ofCluster are the fields of a record that do not come from node of the cluster, datacenter or
// rack, by what the user calls them.
var ofCluster = map[string]string{
	"configuration.version":                       "version",
	"configuration.clusterName":                   "clusterName",
	"configuration.datacenterName":                "datacenters[].datacenterName",
	"configuration.rackName":                      "datacenters[].racks[].rackName",
	"configuration.numTokens":                     "datacenters[].numTokens",
	"configuration.authentication":                "security.authentication.mode",
	"configuration.encryption.internode":          "security.encryption.internode.mode",
	"configuration.encryption.connectsPlain":      "security.encryption.internode (connects without)",
	"configuration.encryption.clients":            "security.encryption.clients.mode",
	"configuration.encryption.clientCertificates": "security.encryption.clients.clientCertificates",
	"pod.certificates":                            "security.encryption",
	"configuration.restartedAt":                   "restartedAt",
	"configuration.revision":                      RulesOfConfiguration,
	"pod.revision":                                "rules of Helenus for pods",
	"pod.image":                                   "image",
	"pod.imagePullPolicy":                         "imagePullPolicy",
	"pod.imagePullSecrets":                        "imagePullSecrets",
}

// asWritten is the name that the user knows a field of a record by.
func asWritten(path string) string {
	if name, ok := ofCluster[path]; ok {
		return name
	}
	_, below, _ := strings.Cut(path, ".")
	return "node." + below
}

// differences compares two JSON values down to the deepest objects. An object that one of them does
// not have is an empty one.
func differences(path string, a, b any) []Difference {
	x, xIsMap := a.(map[string]any)
	y, yIsMap := b.(map[string]any)
	xIsMap, yIsMap = xIsMap || a == nil && len(y) > 0, yIsMap || b == nil && len(x) > 0
	if !xIsMap || !yIsMap {
		if reflect.DeepEqual(a, b) {
			return nil
		}
		return []Difference{{Field: asWritten(path), Have: inWords(a), Want: inWords(b)}}
	}
	var out []Difference
	for key, value := range x {
		out = append(out, differences(path+"."+key, value, y[key])...)
	}
	for key, value := range y {
		if _, both := x[key]; !both {
			out = append(out, differences(path+"."+key, nil, value)...)
		}
	}
	return out
}

// longestValue is how much of a value is shown, in bytes.
const longestValue = 80

func inWords(v any) string {
	if v == nil {
		return unset
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err)) // it was decoded from JSON: cannot happen
	}
	if len(text) > longestValue {
		return strings.ToValidUTF8(string(text[:longestValue]), "") + "…"
	}
	return string(text)
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
