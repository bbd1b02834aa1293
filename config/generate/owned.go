package main

import (
	"fmt"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"helenus.io/helenus/api/v1alpha1"
)

type schema = apiextensionsv1.JSONSchemaProps

// own puts what Helenus owns into a schema: it refuses those keys below each cassandraYaml, those options below each jvm and those names below each
// environment.
func own(root *schema) {
	walk(root, "", func(path string, s *schema) {
		switch {
		case strings.HasSuffix(path, ".cassandraYaml"):
			ownSettings(s)
		case strings.HasSuffix(path, ".jvm.options[]"):
			refuse(s, v1alpha1.OwnedJVMOptions, "self.startsWith(%s)", "option")
		case strings.HasSuffix(path, ".environment[].name"):
			refuse(s, v1alpha1.OwnedVariables, "self == %s", "variable")
		}
	})
}

// ownSettings declares each owned key, so that a rule can name it; all other keys stay free.
func ownSettings(s *schema) {
	free := true
	s.Type = "object"
	s.XPreserveUnknownFields = &free
	s.AdditionalProperties = nil
	s.Properties = map[string]schema{}
	for _, setting := range v1alpha1.OwnedSettings {
		property := settingSchema(setting.Type)
		property.XValidations = apiextensionsv1.ValidationRules{{Rule: "false", Message: setting.Message()}}
		s.Properties[setting.Key] = property
	}
}

// settingSchema is the loosest schema of a type of which a rule can be written: CEL does not see values without a type.
func settingSchema(t v1alpha1.SettingType) schema {
	free := true
	switch t {
	case v1alpha1.SettingText, v1alpha1.SettingInteger:
		// Both, since YAML does not quote texts that look like numbers.
		return schema{XIntOrString: true}
	case v1alpha1.SettingBoolean:
		return schema{Type: "boolean"}
	case v1alpha1.SettingList:
		return schema{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &schema{XIntOrString: true}}}
	case v1alpha1.SettingObject:
		return schema{Type: "object", XPreserveUnknownFields: &free}
	default:
		panic(fmt.Sprintf("setting type %q has no schema", t))
	}
}

// refuse adds one rule for each group of names. condition is a CEL expression over self with a place for one name. The conditions are written out one
// after another, because a macro over a list is estimated to cost many times as much.
func refuse(s *schema, groups []v1alpha1.OwnedName, condition, what string) {
	for _, group := range groups {
		conditions := make([]string, len(group.Names))
		for i, name := range group.Names {
			conditions[i] = fmt.Sprintf(condition, quote(name))
		}
		s.XValidations = append(s.XValidations, apiextensionsv1.ValidationRule{
			Rule:              fmt.Sprintf("!(%s)", strings.Join(conditions, " || ")),
			MessageExpression: fmt.Sprintf("%s + self + %s", quote(what+" "), quote(" is set by Helenus: "+group.Instead)),
		})
	}
}

// quote makes a CEL string of a text.
func quote(text string) string { return strconv.Quote(text) }
