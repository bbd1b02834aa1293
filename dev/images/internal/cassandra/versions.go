package cassandra

import (
	"fmt"
	"slices"
	"strings"

	"helenus.io/helenus/dev/images/internal/lock"
)

// Version is one Cassandra image that can be built.
type Version struct {
	// Number is Cassandra's version: 5.0.6.
	Number string
	// Java is the feature release it runs on.
	Java int
	// Suite is the Debian release whose packages and JDK are used.
	Suite string
	// Python is the version of Python in that release.
	Python string
	// Requirements are the Python packages of cqlsh and what is held back among
	// those they need: pure Python where there is a choice.
	Requirements []string
	// Natives are artifacts, without their classifier, that the release adds for
	// each machine and that Cassandra's own dependencies do not name.
	Natives []lock.Coordinates
}

// corretto is Amazon's crypto provider, which the stock cassandra.yaml of 5.0
// asks for (and does without when it is missing).
var corretto = []lock.Coordinates{{Group: "software.amazon.cryptools", ID: "AmazonCorrettoCryptoProvider",
	Version: "2.2.0"}}

// Versions are all images, oldest first. 4.1 does not run on Java 17, and only
// Debian bullseye has Java 11.
var Versions = []Version{
	{Number: "4.1.10", Java: 11, Suite: "bullseye", Python: "3.9",
		Requirements: []string{"cqlsh==6.1.3", "cassandra-driver==3.29.3", "wcwidth==0.2.13"}},
	{Number: "5.0.6", Java: 17, Suite: "bookworm", Python: "3.11",
		Requirements: []string{"cqlsh==6.2.1", "cassandra-driver==3.29.3", "wcwidth==0.2.13"}, Natives: corretto},
	{Number: "5.0.9", Java: 17, Suite: "bookworm", Python: "3.11",
		Requirements: []string{"cqlsh==6.2.2", "cassandra-driver==3.29.3", "wcwidth==0.2.13"}, Natives: corretto},
}

// Find returns the version of the image called name: cassandra-5.0.6.
func Find(name string) (Version, error) {
	number := strings.TrimPrefix(name, "cassandra-")
	for _, v := range Versions {
		if v.Number == number {
			return v, nil
		}
	}
	return Version{}, fmt.Errorf("no image %q; there are %s", name, strings.Join(Names(), ", "))
}

// Names are the names of all images.
func Names() []string {
	var names []string
	for _, v := range Versions {
		names = append(names, v.Image())
	}
	return names
}

// Image is the name of the image on this machine: cassandra-5.0.6.
func (v Version) Image() string { return "cassandra-" + v.Number }

// Line is the release line: 5.0.
func (v Version) Line() string { return v.Number[:strings.LastIndex(v.Number, ".")] }

// Reference is the tag in the image file, that of the official image.
func (v Version) Reference() string { return "docker.io/library/cassandra:" + v.Number }

// jar is Cassandra's own artifact.
func (v Version) jar() lock.Coordinates {
	return lock.Coordinates{Group: "org.apache.cassandra", ID: "cassandra-all", Version: v.Number}
}

// machines maps Debian's architecture names to those of the kernel and of
// Netty's classifiers.
var machines = map[string]struct{ kernel, netty, triplet string }{
	"amd64": {"x86_64", "linux-x86_64", "x86_64-linux-gnu"},
	"arm64": {"aarch64", "linux-aarch_64", "aarch64-linux-gnu"},
}

// Architectures are those the images can be built for, given a lock file.
func Architectures() []string { return []string{"amd64", "arm64"} }

// keepArtifact leaves out native libraries of other systems.
func keepArtifact(architecture string) func(lock.Coordinates) bool {
	ours := machines[architecture].netty
	return func(c lock.Coordinates) bool {
		foreign := slices.ContainsFunc([]string{"osx-", "windows-", "linux-"}, func(system string) bool {
			return strings.HasPrefix(c.Classifier, system)
		})
		return !foreign || c.Classifier == ours
	}
}

func (v Version) natives(architecture string) []lock.Coordinates {
	var natives []lock.Coordinates
	for _, c := range v.Natives {
		c.Classifier = machines[architecture].netty
		natives = append(natives, c)
	}
	return natives
}
