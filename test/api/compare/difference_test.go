package compare

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// tolerance is how far apart the two servers may have written down the same moment.
const tolerance = 5 * time.Second

// symbolic replaces in an object what each server chooses for itself by names in the order of
// appearance, and leaves out what cannot be the same.
func (s *side) symbolic(at any, path string) any {
	switch at := at.(type) {
	case map[string]any:
		out := make(map[string]any, len(at))
		keys := make([]string, 0, len(at))
		for key := range at {
			keys = append(keys, key)
		}
		sort.Strings(keys)
		for _, key := range keys {
			out[key] = s.symbolic(at[key], path+"."+key)
		}
		return out
	case []any:
		out := make([]any, len(at))
		for i, value := range at {
			out[i] = s.symbolic(value, path+"[]")
		}
		if path == ".metadata.managedFields" {
			return owners(out)
		}
		return out
	case string:
		switch {
		case path == ".metadata.uid":
			return s.symbol("uid", at)
		case path == ".metadata.resourceVersion":
			return s.symbol("version", at)
		case strings.HasPrefix(path, ".spec.clusterIP") && at != "None":
			return s.symbol("address", at)
		}
		return at
	default:
		return at
	}
}

// owners are managed fields in an order that does not depend on time.
func owners(entries []any) []any {
	key := func(e any) string {
		m, _ := e.(map[string]any)
		return fmt.Sprint(m["manager"], m["operation"], m["subresource"])
	}
	for _, e := range entries {
		if m, ok := e.(map[string]any); ok {
			delete(m, "time")
		}
	}
	slices.SortStableFunc(entries, func(a, b any) int { return strings.Compare(key(a), key(b)) })
	return entries
}

func (s *side) symbol(sort, value string) string {
	key := sort + " " + value
	if s.symbols[key] == "" {
		s.symbols[key] = fmt.Sprintf("%s %d", sort, len(s.symbols))
	}
	return s.symbols[key]
}

// difference of two answers, one line for each field; nothing if they are the same.
func difference(actual, simulated *side, a, b answer) []string {
	if x, y := verdict(a.err), verdict(b.err); x != y && !leftNull(a.err, b.err) {
		return []string{fmt.Sprintf("error: real %s, simulated %s", said(x, a.err), said(y, b.err))}
	}
	if len(a.objects) != len(b.objects) {
		return []string{fmt.Sprintf("objects: real %d, simulated %d", len(a.objects), len(b.objects))}
	}
	var out []string
	for i := range a.objects {
		unequal("", actual.symbolic(a.objects[i], ""), simulated.symbolic(b.objects[i], ""),
			func(path string, x, y any) {
				out = append(out, fmt.Sprintf("%s: real %s, simulated %s", path, brief(x), brief(y)))
			})
	}
	sort.Strings(out)
	return out
}

// leftNull says that both refuse an apply, the real one because of what it put there itself: before
// 1.37 it leaves a null where it takes the last field of a map away that another manager made.
func leftNull(actual, simulated error) bool {
	return apierrors.IsInvalid(actual) && apierrors.IsInvalid(simulated) &&
		strings.Contains(actual.Error(), `in body must be of type object: "null"`)
}

func said(verdict string, err error) string {
	if err == nil {
		return "none"
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Sprintf("%s (%s)", verdict, text)
}

// missing stands for what is not there.
type missing struct{}

func unequal(path string, x, y any, tell func(path string, x, y any)) {
	a, aMap := x.(map[string]any)
	b, bMap := y.(map[string]any)
	if aMap && bMap {
		for key, value := range a {
			other, has := b[key]
			if !has {
				other = missing{}
			}
			unequal(path+"."+key, value, other, tell)
		}
		for key, value := range b {
			if _, both := a[key]; !both {
				unequal(path+"."+key, missing{}, value, tell)
			}
		}
		return
	}
	as, aList := x.([]any)
	bs, bList := y.([]any)
	if aList && bList && len(as) == len(bs) {
		for i := range as {
			unequal(fmt.Sprintf("%s[%d]", path, i), as[i], bs[i], tell)
		}
		return
	}
	if !equal(x, y) {
		tell(path, x, y)
	}
}

func equal(x, y any) bool {
	a, b := brief(x), brief(y)
	if a == b {
		return true
	}
	s, isText := x.(string)
	t, alsoText := y.(string)
	if !isText || !alsoText {
		return false
	}
	at, err1 := time.Parse(time.RFC3339, s)
	other, err2 := time.Parse(time.RFC3339, t)
	return err1 == nil && err2 == nil && at.Sub(other).Abs() <= tolerance
}

func brief(value any) string {
	if _, no := value.(missing); no {
		return "nothing"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
