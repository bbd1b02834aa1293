package main

import (
	_ "embed"
	"fmt"
	"os"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"helenus.io/helenus/api/v1alpha1"
)

type schema = apiextensionsv1.JSONSchemaProps

// own puts what Helenus owns into a schema: it leaves the keys below each cassandraYaml free,
// refuses those options below each jvm and those names below each environment.
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

// ownSettings leaves every key free: which may not be there is the policy's to say, since CEL in a
// schema sees only what the schema declares, and what it declares is offered to users.
func ownSettings(s *schema) {
	free := true
	s.Type = "object"
	s.XPreserveUnknownFields = &free
	s.AdditionalProperties, s.Properties = nil, nil
}

// settingsPolicy writes the admission policy that refuses the keys of cassandra.yaml which Helenus
// owns.
func settingsPolicy(path string) error {
	keys := make([]string, len(v1alpha1.OwnedSettings))
	for i, setting := range v1alpha1.OwnedSettings {
		keys[i] = "'" + setting.Key + "'"
	}
	text := strings.ReplaceAll(settingsPolicyText, "KEYS", strings.Join(keys, ",\n      "))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write policy of settings: %w", err)
	}
	return nil
}

//go:embed settings-policy.yaml
var settingsPolicyText string

// refuse adds one rule for each group of names. condition is a CEL expression over self with a
// place for one name. The conditions are written out one after another, because a macro over a list
// is estimated to cost many times as much.
func refuse(s *schema, groups []v1alpha1.OwnedName, condition, what string) {
	for _, group := range groups {
		conditions := make([]string, len(group.Names))
		for i, name := range group.Names {
			conditions[i] = fmt.Sprintf(condition, quote(name))
		}
		s.XValidations = append(s.XValidations, apiextensionsv1.ValidationRule{
			Rule: fmt.Sprintf("!(%s)", strings.Join(conditions, " || ")),
			MessageExpression: fmt.Sprintf("%s + self + %s", quote(what+" "),
				quote(" is set by Helenus: "+group.Instead)),
		})
	}
}

// quote makes a CEL string of a text.
func quote(text string) string { return strconv.Quote(text) }
