package release

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"helenus.io/helenus/dev/images/internal/lock"
	"helenus.io/helenus/dev/images/internal/own"
)

// contents are what an image consists of, as SPDX 2.3 writes it.
type contents struct {
	release *Release
	image   own.Image
	parts   map[string]part
}

// part is a package of SPDX.
type part struct {
	ID               string      `json:"SPDXID"`
	Name             string      `json:"name"`
	Version          string      `json:"versionInfo"`
	DownloadLocation string      `json:"downloadLocation"`
	FilesAnalyzed    bool        `json:"filesAnalyzed"`
	LicenseConcluded string      `json:"licenseConcluded"`
	LicenseDeclared  string      `json:"licenseDeclared"`
	Copyright        string      `json:"copyrightText"`
	Checksums        []checksum  `json:"checksums,omitempty"`
	References       []reference `json:"externalRefs,omitempty"`
}

type checksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type reference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

const unknown = "NOASSERTION"

func newContents(r *Release, i own.Image) *contents {
	return &contents{release: r, image: i, parts: map[string]part{}}
}

// add a part by its package URL.
func (c *contents) add(name, version, locator string, sums ...checksum) {
	p := part{Name: name, Version: version, DownloadLocation: unknown, LicenseConcluded: unknown,
		LicenseDeclared: unknown, Copyright: unknown, Checksums: sums,
		References: []reference{{"PACKAGE-MANAGER", "purl", locator}}}
	c.parts[locator] = p
}

// addBinary adds the modules that a program was built of, as `go version -m` says them.
func (c *contents) addBinary(file string) error {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read what %s was built of: %w", file, err)
	}
	c.add("std", strings.TrimPrefix(info.GoVersion, "go"), "pkg:golang/std@"+strings.TrimPrefix(info.GoVersion, "go"))
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c.add(m.Path, m.Version, "pkg:golang/"+m.Path+"@"+m.Version)
	}
	return nil
}

// addJars adds what an image takes from Maven Central, by its lock file.
func (c *contents) addJars(i own.Image, locked *lock.File) error {
	for _, jar := range i.Jars {
		at := slices.IndexFunc(locked.Maven, func(a lock.Artifact) bool { return a.Name == jar.String() })
		if at < 0 {
			return fmt.Errorf("no lock file lists %s", jar)
		}
		locator := fmt.Sprintf("pkg:maven/%s/%s@%s", jar.Group, jar.ID, jar.Version)
		if jar.Classifier != "" {
			locator += "?classifier=" + jar.Classifier
		}
		c.add(jar.Group+":"+jar.ID, jar.Version, locator, checksum{"SHA256", locked.Maven[at].SHA256})
	}
	return nil
}

// json is the document of the image with a digest.
func (c *contents) json(digest v1.Hash) ([]byte, error) {
	const document, image = "SPDXRef-DOCUMENT", "SPDXRef-image"
	name := c.image.Name + "-" + c.release.Version
	parts := []part{{ID: image, Name: c.image.Repository, Version: c.release.Version, DownloadLocation: unknown,
		LicenseConcluded: "Apache-2.0", LicenseDeclared: "Apache-2.0", Copyright: unknown,
		Checksums: []checksum{{"SHA256", digest.Hex}}}}
	relationships := []relationship{{document, "DESCRIBES", image}}
	for n, locator := range slices.Sorted(maps.Keys(c.parts)) { // an order that does not change
		p := c.parts[locator]
		p.ID = fmt.Sprintf("SPDXRef-part-%d", n+1)
		parts, relationships = append(parts, p), append(relationships, relationship{image, "CONTAINS", p.ID})
	}
	text, err := json.MarshalIndent(map[string]any{
		"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": document, "name": name,
		"documentNamespace": c.release.URL + "/" + name + ".spdx.json#" + digest.Hex,
		"creationInfo": map[string]any{"created": c.release.Created.UTC().Format(time.RFC3339),
			"creators": []string{"Tool: helenus-images-" + c.release.Version}},
		"packages": parts, "relationships": relationships,
	}, "", " ")
	if err != nil {
		return nil, fmt.Errorf("encode what is in %s: %w", c.image.Name, err)
	}
	return append(text, '\n'), nil
}
