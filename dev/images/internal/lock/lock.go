package lock

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// File is the lock file of one image.
type File struct {
	// Image is the name of the image, as in the name of the lock file.
	Image string `json:"image"`
	// Architecture is Debian's name of the processor: amd64 or arm64.
	Architecture string `json:"architecture"`
	// Maven lists the jar files.
	Maven []Artifact `json:"maven,omitempty"`
	// Debian lists the packages whose files go into the image.
	Debian *Suite `json:"debian,omitempty"`
	// Java lists the packages with the JDK that the runtime is cut from.
	Java *Suite `json:"java,omitempty"`
	// Python lists wheels.
	Python []Wheel `json:"python,omitempty"`
}

// Suite is a list of packages of one Debian release.
type Suite struct {
	// Name is the code name of the release: bookworm.
	Name     string    `json:"suite"`
	Packages []Package `json:"packages"`
}

// Package is a Debian package.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	SHA256  string `json:"sha256"`
}

// Artifact is a file on Maven Central.
type Artifact struct {
	// Name is group:artifact:version, with :classifier if it has one.
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Wheel is a Python package.
type Wheel struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	SHA256  string `json:"sha256"`
}

// Coordinates are the parts of an artifact's name.
type Coordinates struct {
	Group, ID, Version, Classifier string
}

// Coordinates splits the name of a.
func (a Artifact) Coordinates() (Coordinates, error) {
	parts := strings.Split(a.Name, ":")
	if len(parts) < 3 || len(parts) > 4 || slices.Contains(parts, "") {
		return Coordinates{}, fmt.Errorf("artifact %q: want group:artifact:version or "+
			"group:artifact:version:classifier", a.Name)
	}
	c := Coordinates{Group: parts[0], ID: parts[1], Version: parts[2]}
	if len(parts) == 4 {
		c.Classifier = parts[3]
	}
	return c, nil
}

// String is the name again.
func (c Coordinates) String() string {
	name := c.Group + ":" + c.ID + ":" + c.Version
	if c.Classifier != "" {
		name += ":" + c.Classifier
	}
	return name
}

// FileName is the name of the artifact's file, as Maven and the Cassandra
// release name it.
func (c Coordinates) FileName() string {
	name := c.ID + "-" + c.Version
	if c.Classifier != "" {
		name += "-" + c.Classifier
	}
	return name + ".jar"
}

var hexSHA256 = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Read reads and validates the lock file at path.
func Read(path string) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read lock file: %w", err)
	}
	file, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("read lock file %s: %w", path, err)
	}
	return file, nil
}

// Parse reads a lock file from its text. Unknown fields, missing values,
// malformed hashes and duplicates are errors.
func Parse(data []byte) (*File, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var file File
	if err := decoder.Decode(&file); err != nil {
		return nil, err
	}
	if err := file.validate(); err != nil {
		return nil, err
	}
	return &file, nil
}

func (f *File) validate() error {
	if f.Image == "" || f.Architecture == "" {
		return errors.New("image and architecture must be set")
	}
	seen := map[string]bool{}
	check := func(kind, name, version, sha string) error {
		switch {
		case name == "" || version == "":
			return fmt.Errorf("%s %q: name and version must be set", kind, name)
		case !hexSHA256.MatchString(sha):
			return fmt.Errorf("%s %s: sha256 %q is not 64 hexadecimal digits", kind, name, sha)
		case seen[kind+name]:
			return fmt.Errorf("%s %s: listed twice", kind, name)
		}
		seen[kind+name] = true
		return nil
	}
	for _, a := range f.Maven {
		c, err := a.Coordinates()
		if err != nil {
			return err
		}
		if err := check("artifact", c.Group+":"+c.ID+":"+c.Classifier, c.Version, a.SHA256); err != nil {
			return err
		}
	}
	for kind, suite := range map[string]*Suite{"package": f.Debian, "java package": f.Java} {
		if suite == nil {
			continue
		}
		if suite.Name == "" {
			return fmt.Errorf("%s list: suite must be set", kind)
		}
		for _, p := range suite.Packages {
			if err := check(kind, p.Name, p.Version, p.SHA256); err != nil {
				return err
			}
		}
	}
	for _, w := range f.Python {
		if err := check("wheel", w.Name, w.Version, w.SHA256); err != nil {
			return err
		}
	}
	return nil
}

// Format gives the text of the lock file: every list sorted by name, so that
// the same content is the same text.
func (f *File) Format() ([]byte, error) {
	sorted := *f
	sorted.Maven = slices.SortedFunc(slices.Values(f.Maven),
		func(a, b Artifact) int { return cmp.Compare(a.Name, b.Name) })
	sorted.Python = slices.SortedFunc(slices.Values(f.Python),
		func(a, b Wheel) int { return cmp.Compare(a.Name, b.Name) })
	sorted.Debian = f.Debian.sorted()
	sorted.Java = f.Java.sorted()
	if err := sorted.validate(); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(sorted); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func (s *Suite) sorted() *Suite {
	if s == nil {
		return nil
	}
	return &Suite{
		Name: s.Name,
		Packages: slices.SortedFunc(slices.Values(s.Packages),
			func(a, b Package) int { return cmp.Compare(a.Name, b.Name) }),
	}
}
