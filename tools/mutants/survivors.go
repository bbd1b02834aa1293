package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// survivor is a mutant that no test kills, and why that is right.
type survivor struct {
	key
	Reason string `json:"reason"`
}

func readSurvivors(file string) ([]survivor, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read list of survivors: %w", err)
	}
	return parseSurvivors(content)
}

func parseSurvivors(content []byte) ([]survivor, error) {
	var out []survivor
	if err := yaml.UnmarshalStrict(content, &out); err != nil {
		return nil, fmt.Errorf("read list of survivors: %w", err)
	}
	seen := map[key]bool{}
	for i, s := range out {
		switch {
		case s.File == "" || s.Code == "" || s.Mutant == "":
			return nil, fmt.Errorf("survivor %d of the list: file, code and mutant are needed", i+1)
		case s.Reason == "":
			return nil, fmt.Errorf("survivor %d of the list (%s, %s): say in reason why no test kills it", i+1, s.File,
				s.Mutant)
		case seen[s.key]:
			return nil, fmt.Errorf("survivor %d of the list (%s, %s) is there twice", i+1, s.File, s.Mutant)
		}
		seen[s.key] = true
	}
	return out, nil
}
