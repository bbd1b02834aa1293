package apiserver

import (
	"errors"
	"fmt"
	"reflect"
	"sort"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Kinds are what a server serves: the built-in kinds that a world needs, and those of the
// definitions. Making them is expensive (it compiles every rule of the schemas); they are never
// changed afterwards, and all servers of a process share them.
type Kinds struct {
	scheme *runtime.Scheme
	mapper meta.RESTMapper
	all    []*kind
	named  map[string]*kind
	types  map[reflect.Type]*kind
	lists  map[reflect.Type]*kind
	// applies and patches are those that were worked out before.
	applies memo[outcome]
	patches memo[client.Object]
}

// kind is one kind that is served.
type kind struct {
	schema.GroupVersionKind
	resource   schema.GroupResource
	namespaced bool
	// goType and listType are the structs that clients use; nil if the scheme has none.
	goType, listType reflect.Type
	// custom is nil for a built-in kind.
	custom *definition
	rules  rules
	// managers keep managed fields, by subresource.
	managers map[string]*managedfields.FieldManager
}

// rules are what a built-in kind does beside storing. Every function may be nil.
type rules struct {
	// status says that there is a subresource for the status.
	status bool
	// scopedToStatus are fields beside spec that a write of the status cannot change.
	scopedToStatus []string
	// unconditional says that an update without a resourceVersion overwrites what is there.
	unconditional bool
	// fields are what lists can be selected by, beside name and namespace.
	fields func(object client.Object) map[string]string
	// createOnUpdate says that an update of what is not there makes it.
	createOnUpdate bool
	// defaults brings an object into the form of the server: old fields in their present place, and
	// what a request leaves out filled in.
	defaults func(object client.Object)
	// admit does what admission plugins do to a new object, and may refuse it.
	admit func(s *Server, object client.Object) error
	// admitUpdate is the same for a change.
	admitUpdate func(s *Server, object, old client.Object) error
	// allowUpdate does what admission plugins do to a valid change: it may refuse it.
	allowUpdate func(object, old client.Object) error
	// begin gives a new object, or a changed one, what the server hands out; old is nil for a new
	// one.
	begin func(w *writing, object, old client.Object) error
	// prepareCreate and the others set what the writer of a request has no say in.
	prepareCreate func(object client.Object)
	prepareUpdate func(object, old client.Object)
	prepareStatus func(object, old client.Object, now metav1.Time)
	// customFinalizers says that finalizers are looked at as those of custom kinds, and metaLast
	// that metadata is looked at only if all else is right.
	customFinalizers, metaLast bool
	// validate looks at every object, validateCreate at new ones, and the others at changes.
	validate, validateCreate       func(object client.Object) field.ErrorList
	validateUpdate, validateStatus func(object, old client.Object) field.ErrorList
	// uncollected says that the garbage collector leaves them alone: no finalizer of it is ever
	// set.
	uncollected bool
	// grace is the time that an object has to end by itself when it is deleted, in seconds; asked
	// is what the request wants.
	grace func(object client.Object, asked *int64) int64
}

// Compile makes the kinds of the built-in table and of the definitions. The scheme has the Go types
// of both; it is not copied.
func Compile(scheme *runtime.Scheme, definitions []*apiextensionsv1.CustomResourceDefinition) (*Kinds, error) {
	k := &Kinds{scheme: scheme, named: map[string]*kind{}, types: map[reflect.Type]*kind{},
		lists: map[reflect.Type]*kind{}}
	converter := applyconfigurations.NewTypeConverter(scheme)
	for _, b := range builtins() {
		one := &kind{
			GroupVersionKind: b.version.WithKind(b.name),
			resource:         schema.GroupResource{Group: b.version.Group, Resource: b.resource},
			namespaced:       !b.global,
			rules:            b.rules,
		}
		if err := k.add(one, converter, managedfields.NewDefaultFieldManager); err != nil {
			return nil, err
		}
	}
	for _, d := range definitions {
		one, converter, err := define(d)
		if err != nil {
			return nil, fmt.Errorf("compile %s: %w", d.Name, err)
		}
		if err := k.add(one, converter, managedfields.NewDefaultCRDFieldManager); err != nil {
			return nil, err
		}
	}
	sort.Slice(k.all, func(i, j int) bool { return k.all[i].Kind < k.all[j].Kind })
	k.mapper = k.newMapper()
	return k, nil
}

// newManager is one of the two constructors of field managers.
type newManager func(managedfields.TypeConverter, runtime.ObjectConvertor, runtime.ObjectDefaulter,
	runtime.ObjectCreater, schema.GroupVersionKind,
	schema.GroupVersion, string, map[fieldpath.APIVersion]fieldpath.Filter) (*managedfields.FieldManager, error)

func (k *Kinds) add(one *kind, converter managedfields.TypeConverter, manager newManager) error {
	if k.named[one.Kind] != nil {
		return fmt.Errorf("compile kinds: there are two called %s", one.Kind)
	}
	if of := k.scheme.AllKnownTypes()[one.GroupVersionKind]; of != nil {
		one.goType = of
		k.types[of] = one
	}
	if of := k.scheme.AllKnownTypes()[one.GroupVersion().WithKind(one.Kind+"List")]; of != nil {
		one.listType = of
		k.lists[of] = one
	}
	if one.goType == nil && one.custom == nil {
		return fmt.Errorf("compile kinds: the scheme does not know %s", one.GroupVersionKind)
	}
	one.managers = map[string]*managedfields.FieldManager{}
	for subresource, reset := range one.resetFields() {
		glue := managing{one}
		m, err := manager(converter, glue, glue, glue, one.GroupVersionKind, one.GroupVersion(), subresource,
			fieldpath.NewExcludeFilterSetMap(
				map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(one.GroupVersion().String()): reset}))
		if err != nil {
			return fmt.Errorf("compile %s: %w", one.Kind, err)
		}
		one.managers[subresource] = m
	}
	k.named[one.Kind] = one
	k.all = append(k.all, one)
	return nil
}

// resetFields are the fields that a request cannot change, by subresource: nobody comes to own them
// through it.
func (k *kind) resetFields() map[string]*fieldpath.Set {
	out := map[string]*fieldpath.Set{"": fieldpath.NewSet()}
	if !k.hasStatus() {
		return out
	}
	out[""] = fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	other := fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))
	if k.custom != nil {
		other.Insert(fieldpath.MakePathOrDie("metadata"))
	}
	for _, f := range k.rules.scopedToStatus {
		other.Insert(fieldpath.MakePathOrDie("metadata", f))
	}
	out["status"] = other
	return out
}

func (k *kind) hasStatus() bool {
	if k.custom != nil {
		return k.custom.status
	}
	return k.rules.status
}

func (k *kind) newObject() client.Object {
	if k.goType == nil {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(k.GroupVersionKind)
		return u
	}
	object := reflect.New(k.goType).Interface().(client.Object)
	object.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	return object
}

func (k *Kinds) newMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, one := range k.all {
		scope := meta.RESTScope(meta.RESTScopeRoot)
		if one.namespaced {
			scope = meta.RESTScopeNamespace
		}
		resource := one.GroupVersion().WithResource(one.resource.Resource)
		mapper.AddSpecific(one.GroupVersionKind, resource, resource, scope)
	}
	return mapper
}

// of finds the kind of an object, by its Go type or, where that does not say, by what it says of
// itself.
func (k *Kinds) of(object runtime.Object) (*kind, error) {
	t := reflect.TypeOf(object)
	if t.Kind() == reflect.Pointer {
		if one := k.types[t.Elem()]; one != nil {
			return one, nil
		}
		if one := k.lists[t.Elem()]; one != nil {
			return one, nil
		}
	}
	gvk := object.GetObjectKind().GroupVersionKind()
	switch object.(type) {
	case *unstructured.UnstructuredList, *metav1.PartialObjectMetadataList:
		gvk.Kind = trimList(gvk.Kind)
	}
	return k.exact(gvk)
}

func (k *Kinds) exact(gvk schema.GroupVersionKind) (*kind, error) {
	if gvk.Kind == "" {
		return nil, errors.New("the object does not say of which kind it is")
	}
	if one := k.named[gvk.Kind]; one != nil && one.GroupVersionKind == gvk {
		return one, nil
	}
	return nil, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
}

func trimList(name string) string {
	const list = "List"
	if len(name) > len(list) && name[len(name)-len(list):] == list {
		return name[:len(name)-len(list)]
	}
	return name
}

// Names are the names of all kinds, sorted.
func (k *Kinds) Names() []string {
	out := make([]string, len(k.all))
	for i, one := range k.all {
		out[i] = one.Kind
	}
	return out
}

// Key names an object of a kind.
type Key = types.NamespacedName
