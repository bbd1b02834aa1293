package safeguard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
)

// refusal is a write that the API server refused because what it was for is not what was seen:
// another object of the name, or the same one in another version.
type refusal struct {
	// who wrote, verb and kind are what it would have done.
	who, verb, kind string
	// by is the precondition that did not hold.
	by precondition
}

type precondition string

const (
	byUID     precondition = "uid"
	byVersion precondition = "version"
)

// refusals counts them.
type refusals map[refusal]int

// want says that a write was refused so at least once.
func (r refusals) want(t *testing.T, one refusal) {
	t.Helper()
	if r[one] == 0 {
		t.Errorf("%s was not kept from a %s of a %s by its %s: %v", one.who, one.verb, one.kind, one.by, r)
	}
}

// identity is what a wrapper leaves out of a write, of what the operator has seen of its object.
type identity struct{ uid, version bool }

// preconditions is a client that sees which writes the API server refuses because the object is
// another one, or another version, than was seen; and that leaves out such of these preconditions
// as strip says.
type preconditions struct {
	client.Client
	who     string
	strip   func(object client.Object) identity
	refused refusals
}

// judge counts a write that was refused for its preconditions, by the answer: of a uid that differs
// the API server says to a patch that it cannot change, and to others which uid it has. What else
// is a conflict is one of versions.
func (p preconditions) judge(verb string, object client.Object, err error) error {
	var by precondition
	switch {
	case apierrors.IsInvalid(err) && strings.Contains(err.Error(), "metadata.uid"), apierrors.IsConflict(err) &&
		strings.Contains(err.Error(), "the UID in the precondition"):
		by = byUID
	case apierrors.IsConflict(err):
		by = byVersion
	default:
		return err
	}
	kind, unknown := p.GroupVersionKindFor(object)
	if unknown != nil {
		return errors.Join(err, unknown)
	}
	p.refused[refusal{p.who, verb, kind.Kind, by}]++
	return err
}

// Delete leaves out uid and version.
func (p preconditions) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	o := (&client.DeleteOptions{}).ApplyOptions(options)
	if without := p.strip(object); o.Preconditions != nil {
		if without.uid {
			o.Preconditions.UID = nil
		}
		if without.version {
			o.Preconditions.ResourceVersion = nil
		}
	}
	return p.judge("delete", object, p.Client.Delete(ctx, object, o))
}

// Patch leaves out uid and version.
func (p preconditions) Patch(ctx context.Context, object client.Object, patch client.Patch,
	options ...client.PatchOption) error {
	patch, err := stripped(object, patch, p.strip(object))
	if err != nil {
		return err
	}
	return p.judge("patch", object, p.Client.Patch(ctx, object, patch, options...))
}

// Apply leaves out uid and version.
func (p preconditions) Apply(ctx context.Context, applied runtime.ApplyConfiguration,
	options ...client.ApplyOption) error {
	text, err := json.Marshal(applied)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &u.Object); err != nil {
		return err
	}
	without := p.strip(u)
	if without == (identity{}) {
		return p.judge("apply", u, p.Client.Apply(ctx, applied, options...))
	}
	without.from(u)
	if err := p.judge("apply", u, p.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u),
		options...)); err != nil {
		return err
	}
	if text, err = json.Marshal(u.Object); err != nil {
		return err
	}
	return json.Unmarshal(text, applied)
}

// Update leaves out uid and version: the object takes the place of whatever is there.
func (p preconditions) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	p.strip(object).from(object)
	return p.judge("update", object, p.Client.Update(ctx, object, options...))
}

// Status is written by patches, of the version that was seen.
func (p preconditions) Status() client.SubResourceWriter {
	return status{p.Client.Status(), p}
}

type status struct {
	client.SubResourceWriter
	p preconditions
}

func (s status) Patch(ctx context.Context, object client.Object, patch client.Patch,
	options ...client.SubResourcePatchOption) error {
	patch, err := stripped(object, patch, s.p.strip(object))
	if err != nil {
		return err
	}
	return s.p.judge("status", object, s.SubResourceWriter.Patch(ctx, object, patch, options...))
}

// from takes it from an object that is to be written.
func (i identity) from(object client.Object) {
	if i.uid {
		object.SetUID("")
	}
	if i.version {
		object.SetResourceVersion("")
	}
}

// stripped is a patch without the identity of what it is for.
func stripped(object client.Object, patch client.Patch, without identity) (client.Patch, error) {
	if without == (identity{}) {
		return patch, nil
	}
	text, err := patch.Data(object)
	if err != nil {
		return nil, err
	}
	content := map[string]any{}
	if err := json.Unmarshal(text, &content); err != nil {
		return nil, fmt.Errorf("read patch: %w", err)
	}
	if without.uid {
		unstructured.RemoveNestedField(content, "metadata", "uid")
	}
	if without.version {
		unstructured.RemoveNestedField(content, "metadata", "resourceVersion")
	}
	if text, err = json.Marshal(content); err != nil {
		return nil, fmt.Errorf("write patch: %w", err)
	}
	return client.RawPatch(patch.Type(), text), nil
}

// What is left out by a wrapper.
func nothing(client.Object) identity { return identity{} }

// of leaves something out of the writes of some objects.
func of(these func(client.Object) bool, what identity) func(client.Object) identity {
	return func(o client.Object) identity {
		if these(o) {
			return what
		}
		return identity{}
	}
}

func isLedger(o client.Object) bool {
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

func claims(o client.Object) bool {
	_, claim := o.(*corev1.PersistentVolumeClaim)
	return claim
}

func clusters(o client.Object) bool {
	_, cluster := o.(*v1alpha1.CassandraCluster)
	return cluster
}
