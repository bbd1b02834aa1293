package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"helenus.io/helenus/api/v1alpha1"
)

func read(t *testing.T, path string) ([]byte, *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(raw, crd); err != nil {
		t.Fatal(err)
	}
	return raw, crd
}

func committed(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("../../config/crd/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) != 8 {
		t.Fatalf("definitions are %q, want those of eight kinds", paths)
	}
	return paths
}

// TestSizeOfDefinitions holds what is committed to the limit, however it came about.
func TestSizeOfDefinitions(t *testing.T) {
	for _, path := range committed(t) {
		raw, crd := read(t, path)
		asJSON, err := json.Marshal(crd)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d bytes of YAML, %d of JSON", filepath.Base(path), len(raw), len(asJSON))
		if size := len(asJSON); size >= maxDefinitionSize {
			t.Errorf("%s has %d bytes, and may have fewer than %d", path, size, maxDefinitionSize)
		}
	}
}

func TestLargeDefinitionIsRefused(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = strings.Repeat("x", maxDefinitionSize)
	if _, err := encode(crd); err == nil || !strings.Contains(err.Error(), "shorten descriptions") {
		t.Errorf("encode = %v, want it to say that it is too large", err)
	}
	crd.Name = "x"
	raw, err := encode(crd)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "status") {
		t.Errorf("the definition has a status:\n%s", raw)
	}
}

// TestEverythingIsBounded: what has no bound is named by its path.
func TestEverythingIsBounded(t *testing.T) {
	for _, path := range committed(t) {
		_, crd := read(t, path)
		if missing := unbounded(crd.Spec.Versions[0].Schema.OpenAPIV3Schema); len(missing) > 0 {
			t.Errorf("%s: %q have no bound", path, missing)
		}
	}
	five := int64(5)
	open := &schema{Type: "object", Properties: map[string]schema{
		"spec": {Type: "object", Properties: map[string]schema{
			"list": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &schema{Type: "string"}}},
			"bounded": {Type: "array", MaxItems: &five,
				Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &schema{Type: "string", MaxLength: &five}}},
			"map": {
				Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{
					Schema: &schema{Type: "integer"},
				},
			},
			"time":   {Type: "string", Format: "date-time", MaxLength: &five},
			"amount": {XIntOrString: true, Pattern: "^[0-9]+([KMGTPE]i)?$"},
			"either": {XIntOrString: true},
		}},
	}}
	want := []string{".spec.amount", ".spec.list", ".spec.list[]", ".spec.map", ".spec.map{}", ".spec.time"}
	if got := unbounded(open); !slices.Equal(got, want) {
		t.Errorf("unbounded = %q, want %q", got, want)
	}
	readable(open)
	if got, want := unbounded(open), []string{".spec.list", ".spec.list[]", ".spec.map"}; !slices.Equal(got, want) {
		t.Errorf("after making it readable, unbounded = %q, want %q", got, want)
	}
}

// TestOwnedSettings: no cassandraYaml offers a key, and the policy refuses each one that is owned.
func TestOwnedSettings(t *testing.T) {
	for _, path := range committed(t) {
		_, crd := read(t, path)
		found := 0
		walk(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, "", func(path string, s *schema) {
			if !strings.HasSuffix(path, ".cassandraYaml") {
				return
			}
			found++
			if len(s.Properties) > 0 || s.XPreserveUnknownFields == nil {
				t.Errorf("%s offers %d keys", path, len(s.Properties))
			}
		})
		if has := found > 0; has != (strings.Contains(path, "cassandraclusters") || strings.Contains(path, "cassandranodes")) {
			t.Errorf("%s has %d cassandraYaml", path, found)
		}
	}
	policy, err := os.ReadFile("../../config/policy/settings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, setting := range v1alpha1.OwnedSettings {
		if !strings.Contains(string(policy), "'"+setting.Key+"'") {
			t.Errorf("the policy does not refuse %s", setting.Key)
		}
	}
}

// TestOwnedNames: no name is listed twice, and none is hidden by a shorter beginning.
func TestOwnedNames(t *testing.T) {
	for what, groups := range map[string][]v1alpha1.OwnedName{"options": v1alpha1.OwnedJVMOptions,
		"variables": v1alpha1.OwnedVariables} {
		var all []string
		for _, group := range groups {
			all = append(all, group.Names...)
		}
		for i, name := range all {
			for j, other := range all {
				if i != j && (name == other || what == "options" && strings.HasPrefix(name, other)) {
					t.Errorf("%s: %s is covered by %s", what, name, other)
				}
			}
		}
	}
}
