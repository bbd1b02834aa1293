package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// patch changes an object by a patch of one of the four sorts.
func (w *writing) patch(sort types.PatchType, data []byte, force *bool) (*version, error) {
	if sort == types.ApplyYAMLPatchType {
		var applied map[string]any
		if err := decodeYAML(data, &applied); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
		return w.apply(&unstructured.Unstructured{Object: applied}, force)
	}
	if force != nil {
		return nil, invalidOptions(field.Forbidden(field.NewPath("force"), "may not be specified for non-apply patch"))
	}
	var change func(content map[string]any) (map[string]any, error)
	switch sort {
	case types.MergePatchType:
		var patch map[string]any
		if err := utiljson.Unmarshal(data, &patch); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		change = func(content map[string]any) (map[string]any, error) {
			merged, ok := mergePatch(content, patch).(map[string]any)
			if !ok {
				return nil, apierrors.NewBadRequest("a merge patch must be an object")
			}
			return merged, nil
		}
	case types.JSONPatchType:
		change = func(content map[string]any) (map[string]any, error) { return applyJSONPatch(content, data) }
	case types.StrategicMergePatchType:
		if w.kind.custom != nil {
			return nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "patch", w.kind.resource,
				w.key.Name,
				"the body of the request was in an unknown format - accepted media types include: "+
					"application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml", 0, false)
		}
		var patch map[string]any
		if err := utiljson.Unmarshal(data, &patch); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		change = func(content map[string]any) (map[string]any, error) {
			return strategicpatch.StrategicMergeMapPatch(content, patch, w.kind.newObject())
		}
	default:
		return nil, fmt.Errorf("patches of type %s are not supported", sort)
	}
	return w.change(func(live *version) (client.Object, ownership, error) {
		mark := printOf(w.kind.Kind, w.subresource(), string(sort), data, live.comparable())
		if known, found := w.kinds.patches.get(mark); found {
			object := w.kind.copyOf(known)
			return object, w.own(live, object), nil
		}
		object, err := w.patched(live, change)
		if err != nil {
			return nil, ownership{}, err
		}
		w.kinds.patches.put(mark, w.kind.copyOf(object))
		return object, w.own(live, object), nil
	}, nil, false)
}

// patched is the object that a patch other than an apply proposes.
func (w *writing) patched(live *version, change func(map[string]any) (map[string]any, error)) (client.Object, error) {
	content, err := w.kind.content(live.object)
	if err != nil {
		return nil, err
	}
	changed, err := change(content)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: changed}
	if u.GetName() != w.key.Name {
		return nil, apierrors.NewBadRequest(
			fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", u.GetName(), w.key.Name))
	}
	object, err := w.kind.decode(u)
	if err != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "",
			field.ErrorList{field.Invalid(field.NewPath("patch"), "", err.Error())})
	}
	return object, nil
}

// mergePatch is RFC 7386: a JSON merge patch. The target is changed.
func mergePatch(target, patch any) any {
	fields, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out, ok := target.(map[string]any)
	if !ok {
		out = map[string]any{}
	}
	for key, value := range fields {
		if value == nil {
			delete(out, key)
			continue
		}
		out[key] = mergePatch(out[key], value)
	}
	return out
}

func applyJSONPatch(content map[string]any, data []byte) (map[string]any, error) {
	patch, err := jsonpatch.DecodePatch(data)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	text, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encode object: %w", err)
	}
	if text, err = patch.Apply(text); err != nil {
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "",
			err.Error(), 0, false)
	}
	out := map[string]any{}
	if err := utiljson.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("decode patched object: %w", err)
	}
	return out, nil
}

func decodeYAML(data []byte, into *map[string]any) error {
	text, err := yaml.YAMLToJSON(data)
	if err != nil {
		return err
	}
	return utiljson.Unmarshal(text, into)
}

func invalidOptions(err *field.Error) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "PatchOptions"}, "", field.ErrorList{err})
}

// apply is server-side apply. It makes the object if it is not there, unless the applied object has
// a uid.
func (w *writing) apply(applied *unstructured.Unstructured, force *bool) (*version, error) {
	if w.manager == "" {
		return nil, invalidOptions(field.Required(field.NewPath("fieldManager"), "is required for apply patch"))
	}
	if w.kind.managers[w.subresource()] == nil {
		return nil, errors.New("server-side apply is not supported here")
	}
	forced := force != nil && *force
	return w.change(func(live *version) (client.Object, ownership, error) { return w.applied(live, applied, forced) },
		nil, w.subresource() == "" || w.kind.rules.createOnUpdate)
}

// outcome is what an apply comes to; it is shared.
type outcome struct {
	object  client.Object
	entries []metav1.ManagedFieldsEntry
}

func (w *writing) applied(live *version, applied *unstructured.Unstructured, force bool) (client.Object, ownership,
	error) {
	before, entries := w.kind.live(live)
	now := w.now()
	question := []any{w.kind.Kind, w.subresource(), w.manager, force, now.Unix(), applied, entries, nil}
	if live != nil {
		question[len(question)-1] = live.comparable()
	}
	mark := printOf(question...)
	known, found := w.kinds.applies.get(mark)
	if !found {
		var err error
		if known, err = w.merge(live, before, entries, applied, force, now); err != nil {
			return nil, ownership{}, err
		}
		w.kinds.applies.put(mark, known)
	}
	return w.kind.copyOf(known.object), ownership{entries: known.entries}, nil
}

// merge works out an apply.
func (w *writing) merge(live *version, before client.Object, entries []metav1.ManagedFieldsEntry,
	applied *unstructured.Unstructured, force bool, now metav1.Time) (outcome, error) {
	result, err := w.kind.managers[w.subresource()].Apply(before, applied.DeepCopy(), w.manager, force)
	if err != nil {
		return outcome{}, err
	}
	object := result.(client.Object)
	owned := timed(entries, object.GetManagedFields(), now)
	if live != nil && sameOwners(entries, owned) {
		// Nobody owns anything else than before, so the times stay as they were.
		owned = entries
	}
	object.SetManagedFields(nil)
	object, err = w.kind.decode(object)
	if err != nil {
		return outcome{}, err
	}
	if live == nil && object.GetUID() != "" {
		return outcome{}, apierrors.NewConflict(w.kind.resource, w.key.Name,
			fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found",
				object.GetUID()))
	}
	if object.GetName() != w.key.Name {
		return outcome{}, apierrors.NewBadRequest(
			fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", object.GetName(),
				w.key.Name))
	}
	return outcome{object, owned}, nil
}
