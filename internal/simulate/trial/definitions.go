package trial

import (
	"fmt"
	"os"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/simulate/apiserver"
)

// Definitions are the custom resource definitions of a directory, by kind.
func Definitions(directory string) (map[string]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := filepath.Glob(filepath.Join(directory, "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("there are no custom resource definitions in %s", directory)
	}
	out := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		d := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, d); err != nil {
			return nil, fmt.Errorf("read definition %s: %w", file, err)
		}
		out[d.Spec.Names.Kind] = d
	}
	return out, nil
}

// CompileKinds makes the kinds of an API server out of the definitions of a directory.
func CompileKinds(directory string) (*apiserver.Kinds, error) {
	definitions, err := Definitions(directory)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register kinds: %w", err)
		}
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, d := range definitions {
		all = append(all, d)
	}
	return apiserver.Compile(scheme, all)
}
