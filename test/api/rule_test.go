package api

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// rule is one validation rule of a schema.
type rule struct {
	kind string
	// path of the schema, such as .spec.datacenters[].name; empty for the object itself.
	path       string
	expression string
	// words match the message with which it refuses.
	words *regexp.Regexp
	// transition rules compare with the object as it was.
	transition bool
}

func (r rule) String() string { return fmt.Sprintf("%s %s: %s", r.kind, r.path, r.expression) }

// never says that nothing at its path is ever accepted.
func (r rule) never() bool { return r.expression == "false" }

// refusedBy says whether a cause of a refusal is this rule.
func (r rule) refusedBy(cause metav1.StatusCause) bool {
	return schemaPath(cause.Field) == r.path && r.words.MatchString(cause.Message)
}

var (
	index     = regexp.MustCompile(`\[[^\]]*\]`)
	usesOld   = regexp.MustCompile(`\boldSelf\b`)
	rootField = []string{"", "<nil>"}
)

// schemaPath makes the path of a schema of the path of a field.
func schemaPath(field string) string {
	if slices.Contains(rootField, field) {
		return ""
	}
	return "." + index.ReplaceAllString(field, "[]")
}

// definitionsOf reads the definitions below a directory.
func definitionsOf(dir string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("list definitions: %w", err)
	}
	all := make([]*apiextensionsv1.CustomResourceDefinition, len(paths))
	for i, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read definition: %w", err)
		}
		all[i] = &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(raw, all[i]); err != nil {
			return nil, fmt.Errorf("decode %s: %w", path, err)
		}
	}
	return all, nil
}

// rules reads every rule of the definitions below a directory.
func rules(dir string) ([]rule, error) {
	crds, err := definitionsOf(dir)
	if err != nil {
		return nil, err
	}
	var all []rule
	for _, crd := range crds {
		for _, version := range crd.Spec.Versions {
			found, err := rulesOf(crd.Spec.Names.Kind, "", version.Schema.OpenAPIV3Schema)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

func rulesOf(kind, path string, schema *apiextensionsv1.JSONSchemaProps) ([]rule, error) {
	var all []rule
	for _, validation := range schema.XValidations {
		words, err := wordsOf(validation.Message, validation.MessageExpression)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", kind, path, err)
		}
		all = append(all, rule{kind, path, validation.Rule, words, usesOld.MatchString(validation.Rule)})
	}
	add := func(path string, below *apiextensionsv1.JSONSchemaProps) error {
		found, err := rulesOf(kind, path, below)
		all = append(all, found...)
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		below := schema.Properties[name]
		if err := add(path+"."+name, &below); err != nil {
			return nil, err
		}
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		if err := add(path+"[]", schema.Items.Schema); err != nil {
			return nil, err
		}
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		return all, add(path+"[]", schema.AdditionalProperties.Schema)
	}
	return all, nil
}

// wordsOf makes a pattern of a message, or of an expression that makes one: its texts as they are,
// anything between them.
func wordsOf(message, expression string) (*regexp.Regexp, error) {
	if expression == "" {
		if message == "" {
			return nil, fmt.Errorf("a rule has no message")
		}
		return regexp.Compile(regexp.QuoteMeta(message) + "$")
	}
	env, err := cel.NewEnv()
	if err != nil {
		return nil, fmt.Errorf("make CEL environment: %w", err)
	}
	parsed, issues := env.Parse(expression)
	if issues.Err() != nil {
		return nil, fmt.Errorf("parse %s: %w", expression, issues.Err())
	}
	return regexp.Compile(`(?s)` + pattern(parsed.NativeRep().Expr()) + "$")
}

func pattern(e ast.Expr) string {
	if call := e.AsCall(); e.Kind() == ast.CallKind && call.FunctionName() == operators.Add {
		return pattern(call.Args()[0]) + pattern(call.Args()[1])
	}
	if text, ok := e.AsLiteral().(types.String); e.Kind() == ast.LiteralKind && ok {
		return regexp.QuoteMeta(string(text))
	}
	return ".*"
}

// coverage is what the cases have shown of each rule.
type coverage struct {
	rules    []rule
	refused  map[string]bool
	accepted map[string]bool
}

func newCoverage(rules []rule) *coverage {
	return &coverage{rules: rules, refused: map[string]bool{}, accepted: map[string]bool{}}
}

// refusal notes which rules refused an object.
func (c *coverage) refusal(kind string, causes []metav1.StatusCause) {
	for _, r := range c.rules {
		if r.kind == kind && slices.ContainsFunc(causes, r.refusedBy) {
			c.refused[r.String()] = true
		}
	}
}

// acceptance notes which rules have looked at an object and were content. old is nil for a new
// object.
func (c *coverage) acceptance(kind string, object, old map[string]any) {
	for _, r := range c.rules {
		path := r.path
		if r.never() {
			path = path[:strings.LastIndex(path, ".")]
		}
		if r.kind == kind && present(object, path) && (!r.transition || old != nil && present(old, path)) {
			c.accepted[r.String()] = true
		}
	}
}

// missing lists the rules that no case has shown to refuse, or to accept.
func (c *coverage) missing() []string {
	var all []string
	for _, r := range c.rules {
		if !c.refused[r.String()] {
			all = append(all, "no refused object: "+r.String())
		}
		if !c.accepted[r.String()] {
			all = append(all, "no accepted object: "+r.String())
		}
	}
	return all
}
