package trial

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/simulate/apiserver"
)

// Parse reads the name of a trial: <scenario>/<seed>, and /<fault> where there is one.
func Parse(name string) (Trial, error) {
	parts := strings.SplitN(name, "/", 3)
	if len(parts) < 2 {
		return Trial{}, fmt.Errorf("trial %q: want <scenario>/<seed>/<fault>", name)
	}
	s, err := Find(parts[0])
	if err != nil {
		return Trial{}, fmt.Errorf("trial %q: %w", name, err)
	}
	seed, err := strconv.ParseUint(parts[1], 10, 64)
	if err != nil {
		return Trial{}, fmt.Errorf("trial %q: seed %q is not a number", name, parts[1])
	}
	t := Trial{Scenario: s, Seed: seed}
	if len(parts) == 3 {
		f, err := ParseFault(parts[2])
		if err != nil {
			return Trial{}, fmt.Errorf("trial %q: %w", name, err)
		}
		t.Fault = &f
	}
	return t, nil
}

// FaultsAt are all faults that can strike at a moment of a run that was seen, and that make a difference there as far as that run tells.
func (seen *Result) FaultsAt(m Moment) []Fault {
	var out []Fault
	for _, name := range Kinds() {
		switch k := kinds[name]; {
		case !k.fits(m):
		case k.view == 0:
			out = append(out, Fault{Kind: name, At: m})
		default:
			for _, view := range slices.Sorted(maps.Keys(seen.Changes)) {
				if seen.changesAfter(view, m) >= k.view {
					out = append(out, Fault{Kind: name, View: view, At: m})
				}
			}
		}
	}
	return out
}

// changesAfter counts the changes of a kind in the time that a view stays behind.
func (seen *Result) changesAfter(view string, m Moment) int {
	at := seen.At[m]
	n := 0
	for _, change := range seen.Changes[view] {
		if change.After(at) && change.Sub(at) < staleFor {
			n++
		}
	}
	return n
}

// ClassOf a fault.
func ClassOf(f Fault) Class { return kinds[f.Kind].class }

// About says in words what a kind of fault does.
func About(kind string) string { return kinds[kind].about }

// CompileKinds makes the kinds of an API server out of definitions.
func CompileKinds(definitions [][]byte) (*apiserver.Kinds, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, text := range definitions {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			return nil, fmt.Errorf("read definition: %w", err)
		}
		crds = append(crds, crd)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register kinds: %w", err)
		}
	}
	return apiserver.Compile(scheme, crds)
}
