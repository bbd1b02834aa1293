package maven

import (
	"bufio"
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"helenus.io/helenus/dev/images/internal/cache"
	"helenus.io/helenus/dev/images/internal/lock"
)

// listGoal prints the resolved artifacts with their files. The plugin's
// version is fixed so that its output keeps its form.
const listGoal = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:list"

// Maven runs mvn.
type Maven struct {
	cache *cache.Cache
}

// New returns a Maven that keeps files in c, besides mvn's own repository.
func New(c *cache.Cache) (*Maven, error) {
	if _, err := exec.LookPath("mvn"); err != nil {
		return nil, fmt.Errorf("mvn is missing: install the package maven: %w", err)
	}
	return &Maven{cache: c}, nil
}

// Resolve finds everything that root needs at run time, itself included, with
// hashes; keep decides about each artifact.
func (m *Maven) Resolve(ctx context.Context, root lock.Coordinates, keep func(lock.Coordinates) bool) ([]lock.Artifact,
	error) {
	files, err := m.list(ctx, []lock.Coordinates{root}, true)
	if err != nil {
		return nil, fmt.Errorf("resolve %s: %w", root, err)
	}
	var artifacts []lock.Artifact
	for c, file := range files {
		if !keep(c) {
			continue
		}
		sha, err := cache.SHA256(file)
		if err != nil {
			return nil, err
		}
		artifacts = append(artifacts, lock.Artifact{Name: c.String(), SHA256: sha})
	}
	return artifacts, nil
}

// Lock finds the hash of each of the given artifacts, without what they need.
func (m *Maven) Lock(ctx context.Context, coordinates []lock.Coordinates) ([]lock.Artifact, error) {
	if len(coordinates) == 0 {
		return nil, nil
	}
	files, err := m.list(ctx, coordinates, false)
	if err != nil {
		return nil, err
	}
	var artifacts []lock.Artifact
	for _, c := range coordinates {
		sha, err := cache.SHA256(files[c])
		if err != nil {
			return nil, fmt.Errorf("hash %s: %w", c, err)
		}
		artifacts = append(artifacts, lock.Artifact{Name: c.String(), SHA256: sha})
	}
	return artifacts, nil
}

// Fetch brings all artifacts into the cache and checks their hashes.
func (m *Maven) Fetch(ctx context.Context, artifacts []lock.Artifact) error {
	var missing []lock.Coordinates
	hashes := map[lock.Coordinates]string{}
	for _, a := range artifacts {
		if m.cache.Has(a.SHA256) {
			continue
		}
		c, err := a.Coordinates()
		if err != nil {
			return err
		}
		missing = append(missing, c)
		hashes[c] = a.SHA256
	}
	if len(missing) == 0 {
		return nil
	}
	files, err := m.list(ctx, missing, false)
	if err != nil {
		return fmt.Errorf("download from Maven: %w", err)
	}
	for _, c := range missing {
		file, ok := files[c]
		if !ok {
			return fmt.Errorf("download from Maven: %s was not delivered", c)
		}
		if err := m.cache.Keep(c.String(), file, hashes[c]); err != nil {
			return err
		}
	}
	return nil
}

// project is the part of a POM that names dependencies.
type project struct {
	XMLName      xml.Name     `xml:"project"`
	ModelVersion string       `xml:"modelVersion"`
	GroupID      string       `xml:"groupId"`
	ArtifactID   string       `xml:"artifactId"`
	Version      string       `xml:"version"`
	Packaging    string       `xml:"packaging"`
	Dependencies []dependency `xml:"dependencies>dependency"`
}

type dependency struct {
	GroupID    string      `xml:"groupId"`
	ArtifactID string      `xml:"artifactId"`
	Version    string      `xml:"version"`
	Classifier string      `xml:"classifier,omitempty"`
	Exclusions []exclusion `xml:"exclusions>exclusion,omitempty"`
}

type exclusion struct {
	GroupID    string `xml:"groupId"`
	ArtifactID string `xml:"artifactId"`
}

// list resolves a made-up project that depends on wanted, and returns the file
// of every artifact.
func (m *Maven) list(ctx context.Context, wanted []lock.Coordinates, transitive bool) (map[lock.Coordinates]string,
	error) {
	directory, err := m.cache.WorkDir("maven")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(directory) }()
	pom := project{ModelVersion: "4.0.0", GroupID: "images", ArtifactID: "images", Version: "1", Packaging: "pom"}
	for _, c := range wanted {
		d := dependency{GroupID: c.Group, ArtifactID: c.ID, Version: c.Version, Classifier: c.Classifier}
		if !transitive {
			d.Exclusions = []exclusion{{GroupID: "*", ArtifactID: "*"}}
		}
		pom.Dependencies = append(pom.Dependencies, d)
	}
	text, err := xml.MarshalIndent(pom, "", "  ")
	if err != nil {
		return nil, err
	}
	pomFile, listFile := filepath.Join(directory, "pom.xml"), filepath.Join(directory, "list.txt")
	if err := os.WriteFile(pomFile, text, 0o644); err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, "mvn", "--batch-mode", "--no-transfer-progress", "--quiet", "--file", pomFile,
		listGoal,
		"-DincludeScope=runtime", "-DoutputFile="+listFile, "-DoutputAbsoluteArtifactFilename=true", "-Dsort=true")
	if out, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("mvn: %w: %s", err, firstErrors(out))
	}
	out, err := os.ReadFile(listFile)
	if err != nil {
		return nil, fmt.Errorf("read mvn's list: %w", err)
	}
	return parseList(out)
}

// listed matches group:artifact:jar[:classifier]:version:scope:path.
var listed = regexp.MustCompile(`^\s*([^:\s]+):([^:\s]+):jar(?::([^:\s]+))?:([^:\s]+):(?:compile|runtime):(/\S.*?\.jar)`)

func parseList(text []byte) (map[lock.Coordinates]string, error) {
	files := map[lock.Coordinates]string{}
	scanner := bufio.NewScanner(bytes.NewReader(text))
	for scanner.Scan() {
		line := ansi.ReplaceAllString(scanner.Text(), "")
		if match := listed.FindStringSubmatch(line); match != nil {
			files[lock.Coordinates{Group: match[1], ID: match[2], Classifier: match[3], Version: match[4]}] = match[5]
		} else if strings.Contains(line, ":jar:") {
			return nil, fmt.Errorf("read mvn's list: line %q has an unknown form", line)
		}
	}
	return files, scanner.Err()
}

var ansi = regexp.MustCompile("\x1b\\[[0-9;]*m")

// firstErrors are the first lines of mvn's output that tell what went wrong.
func firstErrors(out []byte) string {
	var lines []string
	for line := range strings.SplitSeq(ansi.ReplaceAllString(string(out), ""), "\n") {
		if strings.HasPrefix(line, "[ERROR]") && len(lines) < 3 {
			lines = append(lines, strings.TrimPrefix(line, "[ERROR] "))
		}
	}
	return strings.Join(lines, "; ")
}
