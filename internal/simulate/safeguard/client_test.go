package safeguard

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
)

// preconditions is a client that sees which writes the API server refuses because the object is another one, or another version, than was seen; and that
// leaves these preconditions out where strip says so.
type preconditions struct {
	client.Client
	strip   func(object client.Object) bool
	refused map[string]int
}

// judge counts a write that was refused for its preconditions.
func (p preconditions) judge(what string, err error) error {
	if apierrors.IsConflict(err) || apierrors.IsInvalid(err) { // of a uid that differs the server says that it cannot change
		p.refused[what]++
	}
	return err
}

// Delete leaves out uid and version.
func (p preconditions) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	if p.strip(object) {
		o := (&client.DeleteOptions{}).ApplyOptions(options)
		o.Preconditions = nil
		options = []client.DeleteOption{o}
	}
	return p.judge("delete", p.Client.Delete(ctx, object, options...))
}

// Patch leaves out uid and version.
func (p preconditions) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if p.strip(object) {
		text, err := patch.Data(object)
		if err != nil {
			return err
		}
		if text, err = stripped(text); err != nil {
			return err
		}
		patch = client.RawPatch(patch.Type(), text)
	}
	return p.judge("patch", p.Client.Patch(ctx, object, patch, options...))
}

// Apply leaves out uid and version.
func (p preconditions) Apply(ctx context.Context, applied runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	text, err := json.Marshal(applied)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &u.Object); err != nil {
		return err
	}
	if !p.strip(u) {
		return p.judge("apply", p.Client.Apply(ctx, applied, options...))
	}
	u.SetUID("")
	u.SetResourceVersion("")
	if err := p.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), options...); err != nil {
		return err
	}
	if text, err = json.Marshal(u.Object); err != nil {
		return err
	}
	return json.Unmarshal(text, applied)
}

// Update leaves out uid and version: the object takes the place of whatever is there.
func (p preconditions) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	if p.strip(object) {
		object.SetUID("")
		object.SetResourceVersion("")
	}
	return p.judge("update", p.Client.Update(ctx, object, options...))
}

// Status is written by patches, of the uid that was seen.
func (p preconditions) Status() client.SubResourceWriter {
	return status{p.Client.Status(), p}
}

type status struct {
	client.SubResourceWriter
	p preconditions
}

func (s status) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	if s.p.strip(object) {
		text, err := patch.Data(object)
		if err != nil {
			return err
		}
		if text, err = stripped(text); err != nil {
			return err
		}
		patch = client.RawPatch(patch.Type(), text)
	}
	return s.p.judge("status", s.SubResourceWriter.Patch(ctx, object, patch, options...))
}

// stripped is a patch without the identity of what it is for.
func stripped(patch []byte) ([]byte, error) {
	content := map[string]any{}
	if err := json.Unmarshal(patch, &content); err != nil {
		return nil, fmt.Errorf("read patch: %w", err)
	}
	unstructured.RemoveNestedField(content, "metadata", "uid")
	unstructured.RemoveNestedField(content, "metadata", "resourceVersion")
	return json.Marshal(content)
}

// What is meant by a wrapper.
func nothing(client.Object) bool    { return false }
func everything(client.Object) bool { return true }

func ledger(o client.Object) bool {
	_, config := o.(*corev1.ConfigMap)
	return config && o.GetName() == v1alpha1.LedgerName(clusterName)
}

func records(o client.Object) bool {
	_, record := o.(*v1alpha1.CassandraNode)
	return record
}

func budgets(o client.Object) bool {
	_, budget := o.(*policyv1.PodDisruptionBudget)
	return budget
}
