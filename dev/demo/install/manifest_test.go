package install

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const manifest = "../../../config/install.yaml"

func operator(t *testing.T, images Images) *appsv1.Deployment {
	t.Helper()
	objects, err := Manifest(manifest, images)
	if err != nil {
		t.Fatal(err)
	}
	d := &appsv1.Deployment{}
	for _, o := range objects {
		if o.GetKind() == "Deployment" {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, d); err != nil {
				t.Fatal(err)
			}
		}
	}
	return d
}

func TestImagesArePutIntoTheManifestThatUsersApply(t *testing.T) {
	d := operator(t, Images{Operator: "r/operator:1", Agent: "r/agent:1", CassandraRepository: "r/cassandra"})
	c := d.Spec.Template.Spec.Containers[0]
	if c.Image != "r/operator:1" {
		t.Errorf("the operator's image is %s", c.Image)
	}
	for _, want := range []string{"--agent-image=r/agent:1", "--image-repository=r/cassandra"} {
		if n := len(slices.DeleteFunc(slices.Clone(c.Args), func(a string) bool { return a != want })); n != 1 {
			t.Errorf("flags %q have %s %d times, want once", c.Args, want, n)
		}
	}
	if c.ReadinessProbe == nil || d.Spec.Replicas == nil {
		t.Error("putting images in has lost other fields")
	}
}

func TestWithoutImagesTheManifestIsAsItIs(t *testing.T) {
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	c := operator(t, Images{}).Spec.Template.Spec.Containers[0]
	for _, want := range append([]string{"image: " + c.Image}, c.Args...) {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in the manifest", want)
		}
	}
}

func TestAManifestWithoutOperatorIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "m.yaml")
	for content, want := range map[string]string{
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n":                                                         "no Deployment helenus",
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: helenus}\nspec: {template: {spec: {containers: []}}}\n": "0 containers",
		"a: [\n": "read manifest",
	} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Manifest(file, Images{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", content, err, want)
		}
	}
}
