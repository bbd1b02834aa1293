package compare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reference says which of the uids or resourceVersions that a server has shown of an object a
// request carries.
type reference string

const (
	none    reference = ""
	current reference = "current"
	former  reference = "former"
	wrong   reference = "wrong"
)

// What nobody ever has.
const (
	wrongUID     = "11111111-2222-4333-8444-555555555555"
	wrongVersion = "4000000000"
)

// change of one field of an object.
type change struct {
	Path string
	// Value is nil to take the field away.
	Value any
}

// request is one request in a form that can be made of either server, in any namespace, and again.
type request struct {
	Verb, Sub             string
	Kind, Namespace, Name string
	// Body is what is created or applied, or the patch. An update sends what was seen last, with
	// Changes.
	Body    any
	Changes []change
	Patch   types.PatchType
	// Typed sends and reads the Go type, as the product does.
	Typed         bool
	UID, Version  reference
	Manager       string
	Force, DryRun bool
	Labels        string
	Fields        string
	Policy        metav1.DeletionPropagation
	Grace         *int64
}

// String is a request on one line.
func (r request) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", r.Verb, r.Kind)
	if r.Sub != "" {
		fmt.Fprintf(&b, "/%s", r.Sub)
	}
	fmt.Fprintf(&b, " %s/%s", r.Namespace, r.Name)
	word := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, " %s=%s", name, value)
		}
	}
	word("uid", string(r.UID))
	word("version", string(r.Version))
	word("manager", r.Manager)
	word("labels", r.Labels)
	word("fields", r.Fields)
	word("policy", string(r.Policy))
	if r.Grace != nil {
		word("grace", fmt.Sprint(*r.Grace))
	}
	for name, is := range map[string]bool{"typed": r.Typed, "force": r.Force, "dry": r.DryRun} {
		if is {
			fmt.Fprintf(&b, " %s", name)
		}
	}
	word("patch", string(r.Patch))
	for _, c := range r.Changes {
		text, _ := json.Marshal(c.Value)
		word(c.Path, string(text))
	}
	if r.Body != nil && r.Verb != "create" {
		text, _ := json.Marshal(r.Body)
		word("body", string(text))
	}
	return b.String()
}

// answer is what came of a request.
type answer struct {
	err error
	// objects are the one that was returned, or those of a list.
	objects []map[string]any
}

// do makes the request of one server.
func (s *side) do(ctx context.Context, r request) answer {
	m := s.memory(r.Kind, s.namespaceOf(r), s.place.name(r))
	uid, version := pick(m.uids, r.UID, wrongUID), pick(m.versions, r.Version, wrongVersion)
	out, err := s.send(ctx, r, m, uid, version)
	if err != nil {
		return answer{err: err}
	}
	for _, o := range out {
		u := &unstructured.Unstructured{Object: o}
		if r.DryRun || u.GetName() == "" {
			continue
		}
		s.memory(r.Kind, u.GetNamespace(), u.GetName()).remember(o)
	}
	return answer{objects: out}
}

func (s *side) namespaceOf(r request) string {
	if r.Namespace == "" {
		return ""
	}
	return s.place.namespace(r.Namespace)
}

func (s *side) send(ctx context.Context, r request, m *shown, uid, version string) ([]map[string]any, error) {
	dry := []string(nil)
	if r.DryRun {
		dry = []string{metav1.DryRunAll}
	}
	switch r.Verb {
	case "create":
		return s.with(r, s.named(r, runtime.DeepCopyJSON(r.Body.(map[string]any)), uid, version),
			func(o client.Object) error {
				return s.client.Create(ctx, o, &client.CreateOptions{FieldManager: r.Manager, DryRun: dry})
			})
	case "update":
		content := m.last
		if content == nil {
			content = r.Body.(map[string]any)
		}
		content = runtime.DeepCopyJSON(content)
		for _, c := range r.Changes {
			apply(content, c)
		}
		return s.with(r, s.named(r, content, uid, version), func(o client.Object) error {
			if r.Sub != "" {
				return s.client.SubResource(r.Sub).Update(ctx, o,
					&client.SubResourceUpdateOptions{UpdateOptions: client.UpdateOptions{FieldManager: r.Manager,
						DryRun: dry}})
			}
			return s.client.Update(ctx, o, &client.UpdateOptions{FieldManager: r.Manager, DryRun: dry})
		})
	case "patch":
		return s.patch(ctx, r, uid, version, dry)
	case "delete":
		o := &client.DeleteOptions{GracePeriodSeconds: r.Grace, DryRun: dry}
		if r.Policy != "" {
			o.PropagationPolicy = &r.Policy
		}
		if uid != "" || version != "" {
			o.Preconditions = &metav1.Preconditions{}
			if uid != "" {
				o.Preconditions.UID = (*types.UID)(&uid)
			}
			if version != "" {
				o.Preconditions.ResourceVersion = &version
			}
		}
		return nil, s.client.Delete(ctx, s.object(r), o)
	case "deleteAll":
		list, err := s.listOptions(r)
		if err != nil {
			return nil, err
		}
		o := &client.DeleteAllOfOptions{ListOptions: *list,
			DeleteOptions: client.DeleteOptions{GracePeriodSeconds: r.Grace, DryRun: dry}}
		if r.Policy != "" {
			o.PropagationPolicy = &r.Policy
		}
		return nil, s.client.DeleteAllOf(ctx, s.object(r), o)
	case "get":
		return s.with(r, s.object(r).Object, func(o client.Object) error {
			return s.client.Get(ctx, client.ObjectKeyFromObject(o), o)
		})
	case "list":
		return s.list(ctx, r)
	case "evict":
		body := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: s.place.name(r), Namespace: s.namespaceOf(r)}}
		if r.Grace != nil || uid != "" || r.DryRun {
			body.DeleteOptions = &metav1.DeleteOptions{GracePeriodSeconds: r.Grace, DryRun: dry}
			if uid != "" {
				body.DeleteOptions.Preconditions = &metav1.Preconditions{UID: (*types.UID)(&uid)}
			}
		}
		return nil, s.client.SubResource("eviction").Create(ctx, s.pod(r), body)
	case "bind":
		body := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: s.place.name(r), Namespace: s.namespaceOf(r),
			UID: types.UID(uid)},
			Target: corev1.ObjectReference{Kind: "Node", Name: fmt.Sprint(r.Body)}}
		return nil, s.client.SubResource("binding").Create(ctx, s.pod(r), body,
			&client.SubResourceCreateOptions{CreateOptions: client.CreateOptions{DryRun: dry}})
	default:
		panic("no such verb: " + r.Verb)
	}
}

// patchMeta is the metadata that a patch carries.
func patchMeta(uid, version string) map[string]any {
	out := map[string]any{}
	if uid != "" {
		out["uid"] = uid
	}
	if version != "" {
		out["resourceVersion"] = version
	}
	return out
}

func (s *side) patch(ctx context.Context, r request, uid, version string, dry []string) ([]map[string]any, error) {
	var body any
	switch r.Patch {
	case types.JSONPatchType:
		operations := slices.Clone(r.Body.([]any))
		if uid != "" {
			operations = append([]any{map[string]any{"op": "test", "path": "/metadata/uid", "value": uid}},
				operations...)
		}
		if version != "" {
			operations = append([]any{map[string]any{"op": "test", "path": "/metadata/resourceVersion",
				"value": version}}, operations...)
		}
		body = operations
	case types.ApplyYAMLPatchType:
		body = s.named(r, runtime.DeepCopyJSON(r.Body.(map[string]any)), uid, version)
	default:
		content := runtime.DeepCopyJSON(r.Body.(map[string]any))
		if meta := patchMeta(uid, version); len(meta) > 0 {
			had, _ := content["metadata"].(map[string]any)
			for key, value := range had {
				meta[key] = value
			}
			content["metadata"] = meta
		}
		body = content
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	o := client.PatchOptions{FieldManager: r.Manager, DryRun: dry}
	if r.Force {
		o.Force = &r.Force
	}
	return s.with(r, s.object(r).Object, func(object client.Object) error {
		if r.Sub != "" {
			return s.client.SubResource(r.Sub).Patch(ctx, object, client.RawPatch(r.Patch, text),
				&client.SubResourcePatchOptions{PatchOptions: o})
		}
		return s.client.Patch(ctx, object, client.RawPatch(r.Patch, text), &o)
	})
}

func (s *side) listOptions(r request) (*client.ListOptions, error) {
	o := &client.ListOptions{Namespace: s.namespaceOf(r)}
	var err error
	if r.Labels != "" {
		if o.LabelSelector, err = labels.Parse(r.Labels); err != nil {
			return nil, err
		}
	}
	if r.Fields != "" {
		if o.FieldSelector, err = fields.ParseSelector(r.Fields); err != nil {
			return nil, err
		}
	}
	return o, nil
}

func (s *side) list(ctx context.Context, r request) ([]map[string]any, error) {
	o, err := s.listOptions(r)
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	gvk := kindNamed(r.Kind).gvk
	gvk.Kind += "List"
	list.SetGroupVersionKind(gvk)
	if err := s.client.List(ctx, list, o); err != nil {
		return nil, err
	}
	if list.GetResourceVersion() == "" {
		return nil, errors.New("the list has no resourceVersion")
	}
	var out []map[string]any
	for _, item := range list.Items {
		if r.Namespace != "" || strings.HasPrefix(item.GetName(), s.place.prefix) {
			out = append(out, item.Object)
		}
	}
	return out, nil
}

// object is what a request is about, without content.
func (s *side) object(r request) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: s.named(r, map[string]any{}, "", "")}
}

// pod is the same for requests whose body is of another kind than what they are about, which the
// client makes of Go types alone.
func (s *side) pod(r request) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: s.place.name(r), Namespace: s.namespaceOf(r)}}
}

// named gives a content kind, name, and what a request is to carry.
func (s *side) named(r request, content map[string]any, uid, version string) map[string]any {
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(kindNamed(r.Kind).gvk)
	u.SetName(s.place.name(r))
	u.SetNamespace(s.namespaceOf(r))
	u.SetUID(types.UID(uid))
	u.SetResourceVersion(version)
	return content
}

// with calls something with an object of that content, in its Go type if the request wants that and
// if it can be said in it, and gives back what became of it.
func (s *side) with(r request, content map[string]any, do func(client.Object) error) ([]map[string]any, error) {
	if r.Typed {
		if typed, err := s.client.Scheme().New(kindNamed(r.Kind).gvk); err == nil {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content, typed,
				true); err == nil {
				if err := do(typed.(client.Object)); err != nil {
					return nil, err
				}
				// Whether a Go type says of itself what it is depends on the client, not on the
				// server.
				typed.GetObjectKind().SetGroupVersionKind(kindNamed(r.Kind).gvk)
				back, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
				return []map[string]any{back}, err
			}
		}
	}
	u := &unstructured.Unstructured{Object: content}
	if err := do(u); err != nil {
		return nil, err
	}
	return []map[string]any{u.Object}, nil
}

// verdict is an error in the form that must be the same: code, reason, and the fields that are
// wrong.
func verdict(err error) string {
	if err == nil {
		return ""
	}
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return "an error of the client"
	}
	s := status.Status()
	var causes []string
	if s.Details != nil {
		for _, c := range s.Details.Causes {
			causes = append(causes, fmt.Sprintf("%s at %s", c.Type, c.Field))
		}
	}
	// The real server says some things more than once.
	slices.Sort(causes)
	causes = slices.Compact(causes)
	return strings.TrimSpace(fmt.Sprintf("%d %s %s", s.Code, s.Reason, strings.Join(causes, ", ")))
}
