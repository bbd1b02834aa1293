package coverage

import (
	"testing"

	"helenus.io/helenus/internal/simulate/trial"
)

// Every property is tried at the first place where the schema has it; `sweep spec` tries all
// places.
func TestEveryPropertyOfTheSpec(t *testing.T) {
	const directory = "../../../config/crd"
	kinds, err := trial.CompileKinds(directory)
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := trial.Definitions(directory)
	if err != nil {
		t.Fatal(err)
	}
	trier := &Trier{Kinds: kinds, Seed: 1}
	for _, p := range Properties(definitions["CassandraCluster"]) {
		if Repeated(p.Path) {
			continue
		}
		t.Run(p.Path, func(t *testing.T) {
			_, violations := trier.Try(p)
			for _, v := range violations {
				t.Error(v)
			}
		})
	}
}
