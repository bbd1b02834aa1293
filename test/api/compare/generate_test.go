package compare

import (
	"math/rand/v2"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
)

// generator makes random requests about few objects of few kinds, so that they meet.
type generator struct {
	*rand.Rand
	kinds []*subject
}

// length of a sequence, in requests.
const length = 60

var managers = []string{"", "one", "two", "three"}

// generate makes the requests of a seed.
func generate(seed uint64, from []*subject) []request {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // reproducible, not secret
	// What Helenus lives by is asked for more often.
	from = slices.Clone(from)
	for _, k := range from {
		if slices.Contains([]string{"CassandraCluster", "CassandraNode", "Pod", "PersistentVolumeClaim",
			"PodDisruptionBudget", "ConfigMap"}, k.gvk.Kind) {
			from = append(from, k)
		}
	}
	for range 3 {
		g.kinds = append(g.kinds, from[g.IntN(len(from))])
	}
	var out []request
	for _, k := range g.kinds {
		// So that there is something to begin with.
		r := request{Verb: "create", Kind: k.gvk.Kind, Name: k.names[0], Typed: g.in(2), Manager: oneOf(g, managers...),
			Body: runtime.DeepCopyJSON(oneOf(g, k.bodies...))}
		if !k.global {
			r.Namespace = "a"
		}
		out = append(out, r)
	}
	for len(out) < length {
		out = append(out, g.request())
	}
	return out
}

// often is one that is right in most cases, and sometimes one of the others.
func often(g *generator, right reference, others ...reference) reference {
	if g.in(5) {
		return oneOf(g, others...)
	}
	return right
}

func oneOf[T any](g *generator, values ...T) T { return values[g.IntN(len(values))] }

// in says yes once in n times.
func (g *generator) in(n int) bool { return g.IntN(n) == 0 }

func (g *generator) request() request {
	k := oneOf(g, g.kinds...)
	r := request{Kind: k.gvk.Kind, Name: oneOf(g, k.names...), Typed: g.in(2), DryRun: g.in(12),
		Manager: oneOf(g, managers...)}
	if !k.global {
		r.Namespace = oneOf(g, "a", "a", "a", "a", "b")
		if g.in(25) {
			r.Namespace = oneOf(g, ending, ending, "missing")
		}
	}
	switch n := g.IntN(100); {
	case n < 20:
		r.Verb, r.Body = "create", g.body(k)
		if g.in(20) {
			r.UID = wrong
		}
		if g.in(20) {
			r.Version = wrong
		}
	case n < 40:
		r.Verb, r.Body = "update", runtime.DeepCopyJSON(oneOf(g, k.bodies...))
		r.Version, r.UID = often(g, current, none, former, wrong), often(g, oneOf(g, current, none), former, wrong)
		r.Changes = g.changes(k, &r)
	case n < 60:
		r.Verb, r.Patch = "patch", oneOf(g, types.MergePatchType, types.MergePatchType, types.JSONPatchType,
			types.JSONPatchType, types.StrategicMergePatchType)
		r.Version, r.UID = often(g, none, current, former, wrong), often(g, oneOf(g, current, none), former, wrong)
		g.patch(&r, g.changes(k, &r))
	case n < 78:
		g.apply(k, &r)
	case n < 87:
		r.Verb, r.Manager, r.Typed = "delete", "", false
		r.Version, r.UID = often(g, none, current, former, wrong), often(g, oneOf(g, current, none), former, wrong)
		r.Policy, r.Grace = g.policy(), g.grace()
	case n < 89 && !k.global:
		r.Verb, r.Manager, r.Typed = "deleteAll", "", false
		r.Labels, r.Policy, r.Grace = g.labels(), g.policy(), g.grace()
		r.Name = ""
	case n < 91:
		r.Verb, r.Manager, r.DryRun = "get", "", false
	case n < 94 || k.gvk.Kind != "Pod":
		r.Verb, r.Manager, r.Typed, r.DryRun, r.Name = "list", "", false, false, ""
		r.Labels, r.Fields = g.labels(), g.fields(k)
	case g.in(2):
		r.Verb, r.Sub, r.Manager, r.Typed = "evict", "", "", false
		// A wrong uid would be tried again for ten seconds.
		r.UID, r.Grace = oneOf(g, none, none, current), g.grace()
	default:
		r.Verb, r.Manager, r.Typed, r.Body = "bind", "", false, oneOf(g, "m1", "m2")
		r.UID = oneOf(g, none, none, current, wrong)
	}
	return r
}

func (g *generator) policy() metav1.DeletionPropagation {
	return oneOf(g, "", "", metav1.DeletePropagationBackground, metav1.DeletePropagationOrphan,
		metav1.DeletePropagationForeground)
}

func (g *generator) grace() *int64 {
	zero, ten, minute := int64(0), int64(10), int64(60)
	return oneOf(g, nil, nil, nil, &zero, &zero, &ten, &minute)
}

func (g *generator) labels() string {
	return oneOf(g, "", "", "color=red", "color", "!color", "color in (red,blue)")
}

func (g *generator) fields(k *subject) string {
	out := []string{"", "", "metadata.name=n0"}
	if k.gvk.Kind == "Pod" {
		out = append(out, "spec.nodeName=m1", "spec.nodeName=", "status.phase=Running")
	}
	if !k.global {
		out = append(out, "metadata.namespace!=none")
	}
	return oneOf(g, append(out, "spec.bogus=1")...)
}

func (g *generator) body(k *subject) map[string]any {
	out := runtime.DeepCopyJSON(oneOf(g, k.bodies...))
	for g.in(4) {
		apply(out, g.change(k))
	}
	return out
}

// change of an object.
func (g *generator) change(k *subject) change {
	if g.in(3) {
		return oneOf(g, metadataChanges...)
	}
	return oneOf(g, k.changes...)
}

// statusChange is one of its status. Who owns the metadata that a write of the status of a custom
// kind carries, and does not change, is counted by servers before 1.37 alone, so that is left out.
func (g *generator) statusChange(k *subject) change {
	if k.gvk.Group != v1alpha1.GroupVersion.Group && g.in(3) {
		return oneOf(g, metadataChanges...)
	}
	return oneOf(g, k.statusChanges...)
}

// changes of an object, or of its status, in which case it makes it a request of that.
func (g *generator) changes(k *subject, r *request) []change {
	another := g.change
	if len(k.statusChanges) > 0 && g.in(2) && (r.Verb == "patch" || !k.makesByStatus()) {
		r.Sub, another = "status", g.statusChange
	}
	out := []change{another(k)}
	for g.in(3) {
		out = append(out, another(k))
	}
	if g.in(12) {
		return nil
	}
	return out
}

func (g *generator) patch(r *request, changes []change) {
	if r.Patch == types.JSONPatchType {
		operations := []any{}
		for _, c := range changes {
			operations = append(operations, operationOf(c))
		}
		r.Body = operations
		return
	}
	merged := map[string]any{}
	for _, c := range changes {
		if c.Value == nil && strings.HasPrefix(strings.ToLower(steps(c.Path)[0]), "data") {
			// Whether taking something away from where nothing is leaves an empty map there shows
			// in what is immutable alone.
			continue
		}
		mergeInto(merged, patchOf(c))
	}
	r.Body = merged
}

func mergeInto(into, from map[string]any) {
	for key, value := range from {
		a, isMap := into[key].(map[string]any)
		b, both := value.(map[string]any)
		if isMap && both {
			mergeInto(a, b)
			continue
		}
		into[key] = value
	}
}

// apply makes a request a server-side apply: of a whole body, or of single fields.
func (g *generator) apply(k *subject, r *request) {
	r.Verb, r.Patch, r.Force = "patch", types.ApplyYAMLPatchType, g.in(2)
	r.Manager = oneOf(g, "one", "two", "three", "one", "two", "")
	r.UID, r.Version = oneOf(g, none, none, none, none, current, wrong),
		oneOf(g, none, none, none, none, none, current, former)
	switch {
	case len(k.statusChanges) > 0 && g.in(2) && !k.makesByStatus():
		r.Sub = "status"
		body := map[string]any{}
		for range 1 + g.IntN(2) {
			if c := g.statusChange(k); c.Value != nil {
				apply(body, c)
			}
		}
		r.Body = body
	case g.in(2):
		r.Body = g.body(k)
	default:
		body := map[string]any{}
		if c := g.change(k); c.Value != nil {
			apply(body, c)
		}
		r.Body = body
	}
}
