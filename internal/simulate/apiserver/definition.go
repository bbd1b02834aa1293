package apiserver

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	schemaobjectmeta "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	openapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// definition is a compiled CustomResourceDefinition. What it does to an object is what the API
// server's strategy for custom resources does, by the same packages and in the same order.
type definition struct {
	status          bool
	schema          *structuralschema.Structural
	validator       validation.SchemaValidator
	statusValidator validation.SchemaValidator
	rules           *cel.Validator
	// valid are changes that were found valid before.
	valid memo[struct{}]
}

// define compiles the one served version of a definition.
func define(d *apiextensionsv1.CustomResourceDefinition) (*kind, managedfields.TypeConverter, error) {
	var version *apiextensionsv1.CustomResourceDefinitionVersion
	for i := range d.Spec.Versions {
		if v := &d.Spec.Versions[i]; v.Served {
			if version != nil || !v.Storage {
				return nil, nil, errors.New("more than one version is served, which is not supported")
			}
			version = v
		}
	}
	if version == nil || version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return nil, nil, errors.New("no version with a schema is served")
	}
	internal := &apiextensions.CustomResourceValidation{}
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(
		version.Schema, internal, nil,
	); err != nil {
		return nil, nil, fmt.Errorf("convert schema: %w", err)
	}
	structural, err := structuralschema.NewStructural(internal.OpenAPIV3Schema)
	if err != nil {
		return nil, nil, fmt.Errorf("read schema: %w", err)
	}
	structural = structural.DeepCopy()
	if err := defaulting.PruneDefaults(structural); err != nil {
		return nil, nil, fmt.Errorf("prune defaults: %w", err)
	}
	out := &definition{schema: structural, rules: cel.NewValidator(structural, true, celconfig.PerCallLimit)}
	if out.validator, _, err = validation.NewSchemaValidator(internal.OpenAPIV3Schema); err != nil {
		return nil, nil, fmt.Errorf("compile schema: %w", err)
	}
	if version.Subresources != nil && version.Subresources.Status != nil {
		out.status = true
		if status, has := internal.OpenAPIV3Schema.Properties["status"]; has {
			if out.statusValidator, _, err = validation.NewSchemaValidator(&status); err != nil {
				return nil, nil, fmt.Errorf("compile schema of status: %w", err)
			}
		}
	}
	one := &kind{
		GroupVersionKind: schema.GroupVersionKind{Group: d.Spec.Group, Version: version.Name, Kind: d.Spec.Names.Kind},
		resource:         schema.GroupResource{Group: d.Spec.Group, Resource: d.Spec.Names.Plural},
		namespaced:       d.Spec.Scope == apiextensionsv1.NamespaceScoped,
		custom:           out,
	}
	converter, err := typesOf(one.GroupVersionKind, structural)
	if err != nil {
		return nil, nil, fmt.Errorf("make types for server-side apply: %w", err)
	}
	return one, converter, nil
}

// typesOf are the types that server-side apply merges by: those of the schema, with the metadata
// that every object has.
func typesOf(gvk schema.GroupVersionKind, structural *structuralschema.Structural) (managedfields.TypeConverter,
	error) {
	models := map[string]*spec.Schema{}
	reference := func(name string) spec.Ref { return spec.MustCreateRef("#/components/schemas/" + name) }
	definitions := openapi.GetOpenAPIDefinitions(reference)
	for _, name := range []string{
		metav1.ObjectMeta{}.OpenAPIModelName(), metav1.OwnerReference{}.OpenAPIModelName(),
		metav1.ManagedFieldsEntry{}.OpenAPIModelName(),
		metav1.FieldsV1{}.OpenAPIModelName(), metav1.Time{}.OpenAPIModelName(),
	} {
		found, ok := definitions[name]
		if !ok {
			return nil, fmt.Errorf("there is no model %s", name)
		}
		models[name] = &found.Schema
	}
	root := structural.ToKubeOpenAPI()
	text := *spec.StringProperty()
	root.SetProperty("apiVersion", text)
	root.SetProperty("kind", text)
	root.SetProperty(
		"metadata", spec.Schema{SchemaProps: spec.SchemaProps{Ref: reference(metav1.ObjectMeta{}.OpenAPIModelName())}},
	)
	root.AddExtension("x-kubernetes-group-version-kind",
		[]any{map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}})
	models[gvk.Group+"."+gvk.Version+"."+gvk.Kind] = root
	return managedfields.NewTypeConverter(models, false)
}

// coerce drops what the schema does not know, and nulls that it does not allow, and brings the
// metadata into its form.
func (d *definition) coerce(u *unstructured.Unstructured) error {
	kind, apiVersion := u.GetKind(), u.GetAPIVersion()
	objectMeta, has, _, err := schemaobjectmeta.GetObjectMetaWithOptions(u.Object, schemaobjectmeta.ObjectMetaOptions{})
	if err != nil {
		return err
	}
	pruning.PruneWithOptions(u.Object, d.schema, true, structuralschema.UnknownFieldPathOptions{})
	defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, d.schema)
	if err, _ := schemaobjectmeta.CoerceWithOptions(nil, u.Object, d.schema, false,
		schemaobjectmeta.CoerceOptions{}); err != nil {
		return err
	}
	u.SetKind(kind)
	u.SetAPIVersion(apiVersion)
	if has {
		return schemaobjectmeta.SetObjectMeta(u.Object, objectMeta)
	}
	return nil
}

func (d *definition) defaults(u *unstructured.Unstructured) { defaulting.Default(u.Object, d.schema) }

func (d *definition) prepareCreate(u *unstructured.Unstructured) {
	if d.status {
		delete(u.Object, "status")
	}
	u.SetGeneration(1)
}

func (d *definition) prepareUpdate(u, old *unstructured.Unstructured) {
	if d.status {
		if status, has := old.Object["status"]; has {
			u.Object["status"] = status
		} else {
			delete(u.Object, "status")
		}
	}
	if !sameContent(u.Object, old.Object) {
		u.SetGeneration(old.GetGeneration() + 1)
	}
}

// prepareStatus keeps everything but the status as it was.
func (d *definition) prepareStatus(u, old *unstructured.Unstructured) {
	status, has := u.Object["status"]
	content := make(map[string]any, len(old.Object)+1)
	for key, value := range old.Object {
		content[key] = value
	}
	if metadata, ok := content["metadata"].(map[string]any); ok {
		copied := make(map[string]any, len(metadata))
		for key, value := range metadata {
			copied[key] = value
		}
		content["metadata"] = copied
	}
	if has {
		content["status"] = status
	} else {
		delete(content, "status")
	}
	u.Object = content
}

func (d *definition) validate(ctx context.Context, k *kind, u *unstructured.Unstructured,
	objectMeta *metav1.ObjectMeta) field.ErrorList {
	errs := validateMeta(objectMeta, k.namespaced)
	errs = append(errs, validation.ValidateCustomResource(nil, u.Object, d.validator)...)
	errs = append(errs, schemaobjectmeta.Validate(ctx, nil, u.Object, d.schema, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, d.schema, u.Object)...)
	return d.validateRules(ctx, errs, u, nil)
}

func (d *definition) validateUpdate(ctx context.Context, u, old *unstructured.Unstructured,
	objectMeta, oldMeta *metav1.ObjectMeta) field.ErrorList {
	errs := validateMetaUpdate(objectMeta, oldMeta)
	// What is as it was is not refused: violations that were there before stay allowed. So there is
	// nothing to find where nothing changed.
	if sameContent(u.Object, old.Object) {
		return errs
	}
	correlated := common.NewCorrelatedObject(u.Object, old.Object, &model.Structural{Structural: d.schema})
	errs = append(errs, validation.ValidateCustomResourceUpdate(nil, u.Object, old.Object, d.validator,
		validation.WithRatcheting(correlated))...)
	errs = append(errs, schemaobjectmeta.Validate(ctx, nil, u.Object, d.schema, false)...)
	if len(listtype.ValidateListSetsAndMaps(nil, d.schema, old.Object)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, d.schema, u.Object)...)
	}
	return d.validateRules(ctx, errs, u, old, cel.WithRatcheting(correlated))
}

func (d *definition) validateStatus(ctx context.Context, u, old *unstructured.Unstructured,
	objectMeta, oldMeta *metav1.ObjectMeta) field.ErrorList {
	errs := validateMetaUpdate(objectMeta, oldMeta)
	if sameContent(u.Object, old.Object) {
		return errs
	}
	correlated := common.NewCorrelatedObject(u.Object, old.Object, &model.Structural{Structural: d.schema})
	if status, has := u.Object["status"]; has && d.statusValidator != nil {
		errs = append(errs, validation.ValidateCustomResourceUpdate(field.NewPath("status"), status,
			old.Object["status"], d.statusValidator,
			validation.WithRatcheting(correlated.Key("status")))...)
	}
	if found := listtype.ValidateListSetsAndMaps(nil, d.schema, u.Object); len(found) > 0 &&
		len(listtype.ValidateListSetsAndMaps(nil, d.schema, old.Object)) == 0 {
		errs = append(errs, found...)
	}
	return d.validateRules(ctx, errs, u, old, cel.WithRatcheting(correlated))
}

// validateRules evaluates the rules, unless the object is so wrong that they would make no sense of
// it.
func (d *definition) validateRules(ctx context.Context, errs field.ErrorList, u, old *unstructured.Unstructured,
	options ...cel.Option) field.ErrorList {
	if d.rules == nil {
		return errs
	}
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany,
			field.ErrorTypeTypeInvalid:
			return append(errs, field.Invalid(nil, nil,
				"some validation rules were not checked because the object was invalid; correct the existing errors "+
					"to complete validation"))
		default:
		}
	}
	var before any
	if old != nil {
		before = old.Object
	}
	found, _ := d.rules.Validate(ctx, nil, d.schema, u.Object, before, celconfig.RuntimeCELCostBudget, options...)
	return append(errs, found...)
}
