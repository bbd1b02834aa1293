package compare

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// place is where a run of a sequence takes place: every run has names of its own, so that it begins
// with nothing.
type place struct{ prefix string }

func (p place) namespace(n string) string { return p.prefix + n }

// name of an object: those without a namespace have the prefix in their own.
func (p place) name(r request) string {
	if r.Namespace == "" {
		return p.prefix + r.Name
	}
	return r.Name
}

// side is one of the two servers, and what it has shown so far.
type side struct {
	client client.Client
	place  place
	seen   map[string]*shown
	// symbols name the uids, resourceVersions and what else the server chose, in the order in which
	// they appeared.
	symbols map[string]string
}

// shown is what a server has shown of an object.
type shown struct {
	uids, versions []string
	last           map[string]any
}

func newSide(c client.Client, p place) *side {
	return &side{client: c, place: p, seen: map[string]*shown{}, symbols: map[string]string{}}
}

func (s *side) memory(kind, namespace, name string) *shown {
	key := kind + "/" + namespace + "/" + name
	if s.seen[key] == nil {
		s.seen[key] = &shown{}
	}
	return s.seen[key]
}

func (m *shown) remember(content map[string]any) {
	u := &unstructured.Unstructured{Object: content}
	if uid := string(u.GetUID()); uid != "" && (len(m.uids) == 0 || m.uids[len(m.uids)-1] != uid) {
		m.uids = append(m.uids, uid)
	}
	if v := u.GetResourceVersion(); v != "" && (len(m.versions) == 0 || m.versions[len(m.versions)-1] != v) {
		m.versions = append(m.versions, v)
	}
	m.last = runtime.DeepCopyJSON(content)
}

// pick is what a reference stands for; what a server has not shown yet is wrong.
func pick(values []string, r reference, wrong string) string {
	switch {
	case r == none:
		return ""
	case r == current && len(values) > 0:
		return values[len(values)-1]
	case r == former && len(values) > 1:
		return values[len(values)-2]
	default:
		return wrong
	}
}
