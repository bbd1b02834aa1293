package api

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"helenus.io/helenus/api/v1alpha1"
)

// testCase is one object that is accepted or refused: the base object of the kind with a value
// merged in. With before or status the object is stored first, and the case is about the change of
// it.
type testCase struct {
	Name string `json:"name"`
	// At are the places the case is tried at, each "Kind path", such as "CassandraCluster
	// spec.node", or "Kind" for all of an object.
	At []string `json:"at"`
	// Before is merged in at the same place before the object is stored.
	Before any `json:"before,omitempty"`
	// Status is what the status says before the change.
	Status any `json:"status,omitempty"`
	// Value is merged in at the place. In a place below status it is written as its owner writes
	// it.
	Value any `json:"value"`
	// Refused is the end of the message; empty means that the object is accepted.
	Refused string `json:"refused,omitempty"`
}

// caseFiles reads the cases below testdata/rules.
func caseFiles() (map[string][]testCase, error) {
	paths, err := filepath.Glob(filepath.Join("testdata", "rules", "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("list cases: %w", err)
	}
	files := map[string][]testCase{}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read cases: %w", err)
		}
		var cases []testCase
		if err := yaml.UnmarshalStrict(raw, &cases); err != nil {
			return nil, fmt.Errorf("decode %s: %w", path, err)
		}
		files[strings.TrimSuffix(filepath.Base(path), ".yaml")] = cases
	}
	return files, nil
}

// author is who writes a part of a kind.
func author(kind string, status bool, object *unstructured.Unstructured) *rest.Config {
	switch {
	case kind == "CassandraNode" && status:
		podUID, _, _ := unstructured.NestedString(object.Object, "status", "podUID")
		cluster, _, _ := unstructured.NestedString(object.Object, "spec", "cluster", "name")
		user := "system:serviceaccount:" + object.GetNamespace() + ":" + v1alpha1.AgentServiceAccountName(cluster)
		return as(user, map[string][]string{podNameKey: {object.GetName()}, podUIDKey: {podUID}}, masters)
	case kind == "CassandraNode", status:
		return as(operatorUser, nil, masters)
	default:
		return server
	}
}

func resourceOf(kind string) schema.GroupVersionResource {
	return map[string]schema.GroupVersionResource{"CassandraCluster": clusters, "CassandraNode": nodes,
		"CassandraTask": tasks, "CassandraTaskSchedule": schedules,
		"CassandraBackupStore": stores, "CassandraBackup": backups,
		"CassandraBackupSchedule": backupSchedules, "CassandraRestore": restores}[kind]
}

// run tries a case at one of its places, and notes what it shows.
func (c testCase) run(t *testing.T, at string, shown *coverage) {
	kind, path, _ := strings.Cut(at, " ")
	var old map[string]any
	object, err := c.attempt(t, kind, path, &old)
	if c.Refused == "" {
		must(t, err)
		shown.acceptance(kind, object.Object, old)
		return
	}
	causes := causesOf(t, err)
	shown.refusal(kind, causes)
	for _, cause := range causes {
		if strings.HasSuffix(cause.Message, c.Refused) {
			return
		}
	}
	t.Fatalf("no cause ends with %q:\n%s", c.Refused, describe(causes))
}

// attempt writes the object of a case without storing it.
func (c testCase) attempt(t *testing.T, kind, path string, old *map[string]any) (*unstructured.Unstructured, error) {
	object := base(kind)
	dry := []string{metav1.DryRunAll}
	ofStatus := path == "status" || strings.HasPrefix(path, "status.")
	if c.Before == nil && c.Status == nil && !ofStatus {
		object.SetNamespace("default")
		must(t, put(object.Object, path, c.Value))
		return dynamicClient(t, author(kind, false,
			object)).Resource(resourceOf(kind)).Namespace("default").Create(t.Context(), object,
			metav1.CreateOptions{DryRun: dry, FieldValidation: metav1.FieldValidationStrict})
	}
	object.SetNamespace(namespace(t))
	must(t, put(object.Object, path, c.Before))
	stored := c.store(t, kind, object)
	*old = stored.DeepCopy().Object
	must(t, put(stored.Object, path, c.Value))
	return client(t, kind, ofStatus, stored).Update(t.Context(), stored,
		metav1.UpdateOptions{DryRun: dry, FieldValidation: metav1.FieldValidationStrict}, subresource(ofStatus)...)
}

// store stores an object, with the status of the case.
func (c testCase) store(t *testing.T, kind string, object *unstructured.Unstructured) *unstructured.Unstructured {
	stored, err := client(t, kind, false, object).Create(t.Context(), object,
		metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	must(t, err)
	if kind == "CassandraNode" {
		must(
			t, put(
				stored.Object, "status", map[string]any{
					"podUID": string(types.UID("5f0c1a7e-0d1b-4c58-8a59-3f1f7f0f2f11")),
				},
			),
		)
	}
	if c.Status == nil && kind != "CassandraNode" {
		return stored
	}
	if c.Status != nil {
		must(t, put(stored.Object, "status", c.Status))
	}
	stored, err = client(t, kind, true, stored).UpdateStatus(t.Context(), stored, metav1.UpdateOptions{})
	must(t, err)
	return stored
}

func client(t *testing.T, kind string, status bool, object *unstructured.Unstructured) dynamic.ResourceInterface {
	return dynamicClient(t, author(kind, status, object)).Resource(resourceOf(kind)).Namespace(object.GetNamespace())
}

func subresource(status bool) []string {
	if status {
		return []string{"status"}
	}
	return nil
}

// causesOf takes a refusal for being invalid apart.
func causesOf(t *testing.T, err error) []metav1.StatusCause {
	t.Helper()
	if err == nil {
		t.Fatal("accepted; want it refused")
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) || status.Status().Details == nil {
		t.Fatalf("refused for another reason: %v", err)
	}
	return status.Status().Details.Causes
}

func describe(causes []metav1.StatusCause) string {
	var out strings.Builder
	for _, cause := range causes {
		fmt.Fprintf(&out, "  %s: %s\n", cause.Field, cause.Message)
	}
	return out.String()
}
