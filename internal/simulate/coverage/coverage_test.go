package coverage

import (
	"os"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"helenus.io/helenus/internal/simulate/trial"
)

// Every property is tried at the first place where the schema has it; `sweep spec` tries all places.
func TestEveryPropertyOfTheSpec(t *testing.T) {
	var texts [][]byte
	for _, file := range []string{"../../../config/crd/helenus.io_cassandraclusters.yaml", "../../../config/crd/helenus.io_cassandranodes.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	kinds, err := trial.CompileKinds(texts)
	if err != nil {
		t.Fatal(err)
	}
	clusters := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(texts[0], clusters); err != nil {
		t.Fatal(err)
	}
	trier := &Trier{Kinds: kinds, Seed: 1}
	for _, p := range Properties(clusters) {
		if Repeated(p.Path) {
			continue
		}
		t.Run(p.Path, func(t *testing.T) {
			steps, violations := trier.Try(p)
			for _, v := range violations {
				t.Error(v)
			}
			if steps == (Steps{}) {
				t.Error("nothing was tried")
			}
		})
	}
}
