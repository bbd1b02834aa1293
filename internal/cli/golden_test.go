package cli

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"helenus.io/helenus/internal/inspectapi"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// now is when all tests happen.
var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// desk is a user at a terminal.
type desk struct {
	*settings
	out bytes.Buffer
}

func newDesk() *desk {
	d := &desk{}
	d.settings = &settings{streams: Streams{Out: &d.out, Err: &d.out}, operatorNamespace: inspectapi.DefaultNamespace,
		now: func() time.Time { return now }}
	return d
}

// objectsIn reads a file of YAML documents.
func objectsIn(t *testing.T, path string) []client.Object {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(kinds(t)).UniversalDeserializer()
	var objects []client.Object
	for _, document := range strings.Split(string(raw), "\n---\n") {
		object, _, err := decoder.Decode([]byte(document), nil, nil)
		if err != nil {
			t.Fatalf("decode %s: %v", path, err)
		}
		objects = append(objects, object.(client.Object))
	}
	return objects
}

func kinds(t *testing.T) *runtime.Scheme {
	t.Helper()
	s, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// to is a connection to an API server that has these objects, in namespace shop.
func to(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) *connection {
	t.Helper()
	return &connection{
		client: fake.NewClientBuilder().WithScheme(kinds(t)).WithObjects(objects...).WithInterceptorFuncs(funcs).Build(), namespace: "shop",
	}
}

// golden compares an output with what it was when a user looked at it.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
	}
}

// cases are the inputs in a directory, by name.
func cases(t *testing.T, directory string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", directory, "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases in %s: %v", directory, err)
	}
	out := map[string]string{}
	for _, path := range paths {
		out[strings.TrimSuffix(filepath.Base(path), ".yaml")] = path
	}
	return out
}

func TestStatusPrints(t *testing.T) {
	for name, path := range cases(t, "status") {
		t.Run(name, func(t *testing.T) {
			d := newDesk()
			if err := d.status(t.Context(), to(t, interceptor.Funcs{}, objectsIn(t, path)...), "orders"); err != nil {
				t.Fatal(err)
			}
			golden(t, strings.TrimSuffix(path, "yaml")+"txt", d.out.Bytes())
		})
	}
}

func TestPlanPrints(t *testing.T) {
	for name, path := range cases(t, "plan") {
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			inspection := &inspectapi.Inspection{}
			if err := yaml.UnmarshalStrict(raw, inspection); err != nil {
				t.Fatal(err)
			}
			for extension, o := range map[string]planOptions{"txt": {}, "json": {output: "json"},
				"diff": {from: "orders.yaml", diff: true}} {
				if extension == "diff" && inspection.RollOut == nil {
					continue
				}
				format, err := planPrinter(o)
				if err != nil {
					t.Fatal(err)
				}
				out, err := format(inspection)
				if err != nil {
					t.Fatal(err)
				}
				golden(t, strings.TrimSuffix(path, "yaml")+extension, out)
			}
			format, err := planPrinter(planOptions{output: "yaml"})
			if err != nil {
				t.Fatal(err)
			}
			out, err := format(inspection)
			if err != nil {
				t.Fatal(err)
			}
			back := &inspectapi.Inspection{}
			if err := yaml.UnmarshalStrict(out, back); err != nil || !back.ObservedAt.Equal(&inspection.ObservedAt) ||
				len(back.Plan.Steps) != len(inspection.Plan.Steps) {
				t.Errorf("yaml does not read back: %v\n%s", err, out)
			}
		})
	}
}

func TestOutputFormats(t *testing.T) {
	if _, err := planPrinter(planOptions{output: "wide"}); err == nil || err.Error() != `--output "wide" is not known: json and yaml are` {
		t.Errorf("got %v", err)
	}
}
