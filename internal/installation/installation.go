package installation

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"helenus.io/helenus/config"
	"helenus.io/helenus/internal/inspectapi"
)

// Account is the operator's, and the name of its Deployment and its roles.
const Account = "helenus"

// User is how the API server calls the operator that runs in a namespace.
func User(namespace string) string { return "system:serviceaccount:" + namespace + ":" + Account }

// Manifest are the objects of an installation in a namespace, as this program knows them.
func Manifest(namespace string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	text := bytes.ReplaceAll(config.Install, []byte(User(inspectapi.DefaultNamespace)), []byte(User(namespace)))
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		encoded, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, fmt.Errorf("read install.yaml: %w", err)
		}
		if string(encoded) == "null" {
			continue // what stands above the first object
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(encoded); err != nil {
			return nil, fmt.Errorf("read install.yaml: %w", err)
		}
		if object.GetNamespace() == inspectapi.DefaultNamespace {
			object.SetNamespace(namespace)
		}
		out = append(out, object)
	}
	return out, nil
}

// Compared is what became of objects of the manifest.
type Compared struct {
	Missing, Different []string
	Same               int
}

// Policies are the kinds of what keeps users, operator and agents each to their own.
var Policies = []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}

// Compare looks for the objects of some kinds in the API server.
func Compare(ctx context.Context, c client.Client, wanted []*unstructured.Unstructured, kinds ...string) (Compared,
	error) {
	var out Compared
	for _, want := range wanted {
		if !slices.Contains(kinds, want.GetKind()) {
			continue
		}
		got := &unstructured.Unstructured{}
		got.SetGroupVersionKind(want.GroupVersionKind())
		name := want.GetName()
		if strings.HasSuffix(want.GetKind(), "Binding") {
			name = "binding " + name
		}
		switch err := c.Get(ctx, client.ObjectKeyFromObject(want), got); {
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
			out.Missing = append(out.Missing, name)
		case err != nil:
			return out, fmt.Errorf("get %s: %w", name, err)
		case within(want.Object["spec"], got.Object["spec"]):
			out.Same++
		default:
			out.Different = append(out.Different, name)
		}
	}
	return out, nil
}

// within says that an object has what is wanted, and beside it at most fields that nothing is said
// of, such as defaults of the API server.
func within(want, got any) bool {
	switch want := want.(type) {
	case map[string]any:
		got, is := got.(map[string]any)
		for key := range want {
			is = is && within(want[key], got[key])
		}
		return is
	case []any:
		got, is := got.([]any)
		return is && slices.EqualFunc(want, got, within)
	default:
		return reflect.DeepEqual(want, got)
	}
}

// Rights are how many the operator was asked for, and those that it has not.
type Rights struct {
	Asked   int
	Missing []string
}

// Ask says whether the operator has a right.
type Ask func(ctx context.Context, right *authorizationv1.ResourceAttributes) (bool, error)

// AskFor asks for each right of the roles that the manifest gives to the operator. What it does in
// the namespaces of clusters counts in those that it watches.
func AskFor(ctx context.Context, wanted []*unstructured.Unstructured, watched []string, ask Ask) (Rights, error) {
	var out Rights
	for _, binding := range wanted {
		if !strings.HasSuffix(binding.GetKind(), "RoleBinding") {
			continue
		}
		kind, _, _ := unstructured.NestedString(binding.Object, "roleRef", "kind")
		name, _, _ := unstructured.NestedString(binding.Object, "roleRef", "name")
		i := slices.IndexFunc(wanted, func(o *unstructured.Unstructured) bool {
			return o.GetKind() == kind && o.GetName() == name && o.GetNamespace() == binding.GetNamespace()
		})
		if i < 0 {
			continue // a role of Kubernetes
		}
		role := &rbacv1.ClusterRole{} // a Role has the same rules
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(wanted[i].Object, role); err != nil {
			return out, fmt.Errorf("read %s %s: %w", kind, name, err)
		}
		in := []string{binding.GetNamespace()}
		if kind == "ClusterRole" && name == Account && len(watched) > 0 {
			in = watched
		}
		for _, where := range in {
			for _, rule := range role.Rules {
				if err := out.ask(ctx, ask, where, rule); err != nil {
					return out, err
				}
			}
		}
	}
	return out, nil
}

func (r *Rights) ask(ctx context.Context, ask Ask, namespace string, rule rbacv1.PolicyRule) error {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, group := range rule.APIGroups {
		for _, full := range rule.Resources {
			resource, sub, _ := strings.Cut(full, "/")
			for _, name := range names {
				for _, verb := range rule.Verbs {
					allowed, err := ask(ctx, &authorizationv1.ResourceAttributes{Verb: verb, Group: group,
						Resource: resource, Subresource: sub, Name: name, Namespace: namespace})
					if err != nil {
						return fmt.Errorf("ask whether the operator may %s %s: %w", verb, full, err)
					}
					r.Asked++
					if !allowed {
						r.Missing = append(r.Missing, strings.TrimSuffix(verb+" "+full+" in "+namespace, " in "))
					}
				}
			}
		}
	}
	return nil
}
