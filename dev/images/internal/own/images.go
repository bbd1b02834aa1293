package own

import (
	"maps"
	"slices"

	"helenus.io/helenus/dev/images/internal/lock"
)

// Module is the Go module whose commands go into the images.
const Module = "helenus.io/helenus"

// Image is one of the project's images: what is on its empty base.
type Image struct {
	// Name of the image, and of its lock file if it has jars.
	Name string
	// Repository is the reference without tag.
	Repository string
	// Description goes into a label.
	Description string
	// User and group it runs as.
	User string
	// Binaries are Go commands, by their path in the image.
	Binaries map[string]string
	// Jars are Java agents, by their path in the image.
	Jars map[string]lock.Coordinates
	// Java are agents of the project's own, by their path in the image.
	Java map[string]JavaAgent
	// Entrypoint is the program it runs.
	Entrypoint []string
}

// Images are all of the project's own.
var Images = []Image{
	{
		Name:        "helenus",
		Repository:  "ghcr.io/helenus-io/helenus",
		Description: "Operator for Apache Cassandra",
		User:        "65532:65532",
		Binaries:    map[string]string{"/helenus": "./cmd/helenus"},
		Entrypoint:  []string{"/helenus"},
	},
	{
		Name:        "helenus-agent",
		Repository:  "ghcr.io/helenus-io/helenus-agent",
		Description: "Agent beside each Cassandra node, and what it puts into the node's container",
		// That of the Cassandra image: both write the same volumes.
		User: "999:999",
		Binaries: map[string]string{
			"/opt/helenus/helenus-agent": "./cmd/helenus-agent",
			"/opt/helenus/helenus-init":  "./cmd/helenus-init",
		},
		Jars: map[string]lock.Coordinates{
			"/opt/helenus/jolokia-agent-jvm.jar": {Group: "org.jolokia", ID: "jolokia-agent-jvm",
				Version: "2.3.0", Classifier: "javaagent"},
		},
		Java: map[string]JavaAgent{
			"/opt/helenus/helenus-metrics.jar": {Directory: "./cmd/helenus-metrics", Class: "helenus.metrics.Agent"},
		},
		Entrypoint: []string{"/opt/helenus/helenus-agent"},
	},
}

// Artifacts are what an image takes from Maven Central.
func (i *Image) Artifacts() []lock.Coordinates {
	var all []lock.Coordinates
	for _, path := range slices.Sorted(maps.Keys(i.Jars)) {
		all = append(all, i.Jars[path])
	}
	if len(i.Java) > 0 {
		all = append(all, javaCompiler, javaLibrary)
	}
	return all
}

// Find returns the image called name, and whether there is one.
func Find(name string) (Image, bool) {
	for _, i := range Images {
		if i.Name == name {
			return i, true
		}
	}
	return Image{}, false
}
