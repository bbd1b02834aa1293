package api

import (
	"encoding/json"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/record"
)

// TestWriteForAnotherObject sends the writes of operator and agent to an object of the right name
// and another uid: nothing of it may change. That a write to a status does not look at a uid in its
// metadata is why the status is not simply applied.
func TestWriteForAnotherObject(t *testing.T) {
	const podUID = "5f0c1a7e-0d1b-4c58-8a59-3f1f7f0f2f11"
	object := base("CassandraNode")
	object.SetNamespace(namespace(t))
	must(t, put(object.Object, "status", map[string]any{"podUID": podUID}))
	records, statuses := client(t, "CassandraNode", false, object),
		client(t, "CassandraNode", true, object)
	made, err := records.Create(t.Context(), object, metav1.CreateOptions{})
	must(t, err)
	const other = "11111111-1111-1111-1111-111111111111"
	status := &v1alpha1.CassandraNodeStatus{Phase: v1alpha1.PhaseWaiting, PodUID: podUID}
	statusPatch := func(uid types.UID) []byte {
		body, err := record.StatusPatch(uid, status)
		must(t, err)
		return body
	}
	applied := func(metadata, status map[string]any) []byte {
		metadata["name"] = made.GetName()
		u := map[string]any{"apiVersion": made.GetAPIVersion(), "kind": made.GetKind(), "metadata": metadata}
		if status != nil {
			u["status"] = status
		}
		body, err := json.Marshal(u)
		must(t, err)
		return body
	}
	for _, c := range []struct {
		name        string
		patch       types.PatchType
		body        []byte
		subresource []string
		code        int32
		field       string
	}{
		{"the agent's status, another uid", types.JSONPatchType, statusPatch(other), []string{"status"},
			http.StatusUnprocessableEntity, ""},
		{"a status, another version", types.MergePatchType,
			applied(map[string]any{"resourceVersion": "1"}, map[string]any{"phase": "Waiting", "podUID": podUID}),
			[]string{"status"}, http.StatusConflict, ""},
		{"an apply, another uid", types.ApplyPatchType,
			applied(map[string]any{"uid": other, "labels": map[string]any{"a": "b"}}, nil), nil,
			http.StatusUnprocessableEntity, "metadata.uid"},
		{"a merge patch, another uid", types.MergePatchType,
			applied(map[string]any{"uid": other, "labels": map[string]any{"a": "b"}}, nil), nil,
			http.StatusUnprocessableEntity, "metadata.uid"},
		{"a merge patch, another version", types.MergePatchType,
			applied(map[string]any{"resourceVersion": "1", "labels": map[string]any{"a": "b"}}, nil), nil,
			http.StatusConflict, ""},
		// The control: what an apply of a status would do.
		{"an applied status, another uid", types.ApplyPatchType,
			applied(map[string]any{"uid": other}, map[string]any{"phase": "Waiting", "podUID": podUID}),
			[]string{"status"}, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, err := records.Get(t.Context(), made.GetName(), metav1.GetOptions{})
			must(t, err)
			o := metav1.PatchOptions{FieldManager: "test"}
			if c.patch == types.ApplyPatchType {
				o.Force = new(true)
			}
			writer := records
			if len(c.subresource) > 0 {
				writer = statuses
			}
			_, err = writer.Patch(t.Context(), made.GetName(), c.patch, c.body, o, c.subresource...)
			if c.code == 0 {
				must(t, err)
				return
			}
			answer, ok := err.(apierrors.APIStatus)
			if !ok || answer.Status().Code != c.code {
				t.Fatalf("answer %v, want code %d", err, c.code)
			}
			if c.field != "" && (len(answer.Status().Details.Causes) == 0 ||
				answer.Status().Details.Causes[0].Field != c.field) {
				t.Errorf("answer %v, want the cause %s", err, c.field)
			}
			after, err := records.Get(t.Context(), made.GetName(), metav1.GetOptions{})
			must(t, err)
			if after.GetResourceVersion() != before.GetResourceVersion() {
				t.Error("the object was changed")
			}
		})
	}
	after, err := statuses.Patch(t.Context(), made.GetName(), types.JSONPatchType, statusPatch(made.GetUID()),
		metav1.PatchOptions{FieldManager: "test"}, "status")
	must(t, err)
	if phase, _, _ := unstructured.NestedString(after.Object, "status",
		"phase"); phase != string(v1alpha1.PhaseWaiting) {
		t.Errorf("the agent's status with the right uid came to phase %q", phase)
	}
}
