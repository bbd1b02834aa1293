package api

import (
	"path/filepath"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// oldest is the oldest Kubernetes that Helenus supports.
var oldest = version.MajorMinor(1, 34)

// TestOldestKubernetes compiles every expression with the functions that the oldest supported
// Kubernetes has. The server of these tests has more.
func TestOldestKubernetes(t *testing.T) {
	env := environment.MustBaseEnvSet(oldest)
	compiled := 0
	t.Run("rules", func(t *testing.T) {
		crds, err := definitionsOf(definitions)
		must(t, err)
		for _, crd := range crds {
			var internal apiextensions.JSONSchemaProps
			must(
				t, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
					crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &internal, nil,
				),
			)
			structural, err := schema.NewStructural(&internal)
			must(t, err)
			compileRules(t, env, crd.Spec.Names.Kind, structural, model.SchemaDeclType(structural, true), &compiled)
		}
	})
	t.Run("policies", func(t *testing.T) {
		paths, err := filepath.Glob(filepath.Join(policies, "*.yaml"))
		must(t, err)
		for _, path := range paths {
			objects, err := decode(path)
			must(t, err)
			for _, object := range objects {
				if object.GetKind() != "ValidatingAdmissionPolicy" {
					continue
				}
				var policy admissionv1.ValidatingAdmissionPolicy
				must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &policy))
				compilePolicy(t, env, &policy, &compiled)
			}
		}
	})
	if compiled == 0 {
		t.Error("nothing was compiled")
	}
}

func compileRules(t *testing.T, env *environment.EnvSet, path string, s *schema.Structural,
	declared *apiservercel.DeclType, compiled *int) {
	results, err := schemacel.Compile(s, declared, celconfig.PerCallLimit, env, schemacel.NewExpressionsEnvLoader())
	if err != nil {
		t.Errorf("%s: %v", path, err)
	}
	for i, result := range results {
		*compiled++
		if result.Error != nil {
			t.Errorf("%s: %s: %v", path, s.XValidations[i].Rule, result.Error)
		}
		if result.MessageExpressionError != nil {
			t.Errorf("%s: %s: %v", path, s.XValidations[i].MessageExpression, result.MessageExpressionError)
		}
	}
	if s.Items != nil && declared != nil {
		compileRules(t, env, path+"[]", s.Items, declared.ElemType, compiled)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil && declared != nil {
		compileRules(t, env, path+"{}", s.AdditionalProperties.Structural, declared.ElemType, compiled)
	}
	for name, property := range s.Properties {
		compileRules(t, env, path+"."+name, &property, model.SchemaDeclType(&property, false), compiled)
	}
}

func compilePolicy(t *testing.T, env *environment.EnvSet, policy *admissionv1.ValidatingAdmissionPolicy,
	compiled *int) {
	compiler, err := admissioncel.NewCompositedCompiler(env)
	must(t, err)
	check := func(expression string, result admissioncel.CompilationResult) {
		*compiled++
		if result.Error != nil {
			t.Errorf("%s: %s: %v", policy.Name, expression, result.Error)
		}
	}
	options := admissioncel.OptionalVariableDeclarations{HasAuthorizer: true}
	for _, v := range policy.Spec.Variables {
		check(v.Expression, compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name,
			Expression: v.Expression}, options, environment.NewExpressions))
	}
	for _, v := range policy.Spec.Validations {
		check(v.Expression, compiler.CompileCELExpression(&validating.ValidationCondition{Expression: v.Expression},
			options, environment.NewExpressions))
		if v.MessageExpression != "" {
			check(
				v.MessageExpression, compiler.CompileCELExpression(
					&validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}, options,
					environment.NewExpressions,
				),
			)
		}
	}
	for _, c := range policy.Spec.MatchConditions {
		check(c.Expression, compiler.CompileCELExpression(&validating.ValidationCondition{Expression: c.Expression},
			options, environment.NewExpressions))
	}
}
