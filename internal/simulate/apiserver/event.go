package apiserver

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// EventType says what happened to an object.
type EventType string

// The types of events.
const (
	Added    EventType = "Added"
	Modified EventType = "Modified"
	Deleted  EventType = "Deleted"
)

// Event is a committed change. Its objects have their Go types and no managed fields; they are
// shared and must not be changed.
type Event struct {
	Type EventType
	Kind string
	Key  Key
	// Old is the state before; nil for what is new.
	Old client.Object
	// New is the state after. For what is gone it is the last state, with the revision of the
	// deletion.
	New client.Object
	// Revision of the change.
	Revision uint64

	version *version
}

// Write is a committed change and the request that made it.
type Write struct {
	Request
	Event
	At time.Time
}

// Writes are all committed changes since the server was made, in order.
func (s *Server) Writes() []*Write { return s.log }

// String is one line: who did what, and what is different since.
func (w *Write) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%d %s %s %s", w.Revision, w.User, w.Verb, w.Event.Kind)
	if w.Subresource != "" {
		fmt.Fprintf(&out, "/%s", w.Subresource)
	}
	fmt.Fprintf(&out, " %s uid %s", w.Key.Name, w.New.GetUID())
	if w.Type != Modified {
		fmt.Fprintf(&out, ": %s", strings.ToLower(string(w.Type)))
		return out.String()
	}
	fmt.Fprintf(&out, ": %s", strings.Join(w.Changes(), ", "))
	return out.String()
}

// Changes are the fields that a change made different, each as "path: before → after" and sorted;
// nothing for what is new or gone.
func (w *Write) Changes() []string {
	if w.Type != Modified {
		return nil
	}
	var out []string
	differences("", content(w.Old), content(w.New), func(path string, before, after any) {
		if path != "metadata.resourceVersion" {
			out = append(out, fmt.Sprintf("%s: %s → %s", path, brief(before), brief(after)))
		}
	})
	sort.Strings(out)
	return out
}

func content(object client.Object) map[string]any {
	if u, ok := object.(*unstructured.Unstructured); ok {
		return u.Object
	}
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return map[string]any{"unreadable": err.Error()}
	}
	return out
}

func differences(path string, before, after any, tell func(path string, before, after any)) {
	a, isMap := before.(map[string]any)
	b, alsoMap := after.(map[string]any)
	if isMap && alsoMap {
		below := func(key string) string { return strings.TrimPrefix(path+"."+key, ".") }
		for key, value := range a {
			differences(below(key), value, b[key], tell)
		}
		for key, value := range b {
			if _, both := a[key]; !both {
				differences(below(key), nil, value, tell)
			}
		}
		return
	}
	if !sameValue(before, after) {
		tell(path, before, after)
	}
}

// brief is a value on little space.
func brief(value any) string {
	const most = 80
	if value == nil {
		return "none"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "?"
	}
	if s := []rune(string(text)); len(s) > most {
		out := string(s[:most]) + "…"
		if reasons := reasonsIn(value); len(reasons) > 0 {
			out += " with the reasons " + strings.Join(reasons, ", ")
		}
		return out
	}
	return string(text)
}

// reasonsIn are the reasons that a part of a status names, such as its blocked steps.
func reasonsIn(value any) []string {
	items, ok := value.([]any)
	if !ok {
		items = []any{value}
	}
	var out []string
	for _, item := range items {
		if fields, ok := item.(map[string]any); ok {
			if reason, ok := fields["reason"].(string); ok {
				out = append(out, reason)
			}
		}
	}
	return out
}
