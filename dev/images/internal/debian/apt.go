package debian

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"helenus.io/helenus/dev/images/internal/cache"
	"helenus.io/helenus/dev/images/internal/lock"
)

// Apt is apt on one Debian release and architecture, apart from this machine's
// own packages. Only the main suite is used: unlike the security suite, its
// packages stay where they are until the next point release.
type Apt struct {
	cache        *cache.Cache
	suite        string
	architecture string
	config       string
	updated      bool
}

// New prepares apt for a release by its code name.
func New(c *cache.Cache, suite, architecture string) (*Apt, error) {
	for _, command := range []string{"apt-get", "apt-cache", "dpkg-deb"} {
		if _, err := exec.LookPath(command); err != nil {
			return nil, fmt.Errorf("%s is missing: the images are assembled from Debian packages and need apt and dpkg",
				command)
		}
	}
	if _, err := os.Stat(keyring); err != nil {
		return nil, fmt.Errorf("the keys of the Debian archive are missing: install the package "+
			"debian-archive-keyring: %w", err)
	}
	mirror, err := Mirror()
	if err != nil {
		return nil, err
	}
	root := c.Apt(suite + "-" + architecture)
	for _, directory := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(root, directory), 0o755); err != nil {
			return nil, fmt.Errorf("prepare apt for %s: %w", suite, err)
		}
	}
	config := filepath.Join(root, "apt.conf")
	for file, text := range map[string]string{
		filepath.Join(root, "status"):       "",
		filepath.Join(root, "sources.list"): fmt.Sprintf("deb [signed-by=%s] %s %s main\n", keyring, mirror, suite),
		config: fmt.Sprintf(`Dir::State %[1]q;
Dir::State::status "%[1]s/status";
Dir::Cache "%[1]s/cache";
Dir::Etc::sourcelist "%[1]s/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
APT::Architecture %[2]q;
APT::Architectures { %[2]q; };
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "3";
`, root, architecture),
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return nil, fmt.Errorf("prepare apt for %s: %w", suite, err)
		}
	}
	return &Apt{cache: c, suite: suite, architecture: architecture, config: config}, nil
}

// Resolve finds the packages that roots need, themselves included, without
// those in drop, with versions and hashes.
func (a *Apt) Resolve(ctx context.Context, roots, drop []string) (*lock.Suite, error) {
	if err := a.update(ctx); err != nil {
		return nil, err
	}
	plan, err := a.run(ctx, "", "apt-get", append([]string{"install", "--yes", "--print-uris"}, roots...)...)
	if err != nil {
		return nil, fmt.Errorf("resolve packages of %s: %w", a.suite, err)
	}
	var names []string
	for _, match := range planned.FindAllSubmatch(plan, -1) {
		if name := string(match[1]); !slices.Contains(drop, name) {
			names = append(names, name)
		}
	}
	return a.describe(ctx, names)
}

// Exactly finds the versions and hashes of the named packages alone.
func (a *Apt) Exactly(ctx context.Context, names []string) (*lock.Suite, error) {
	if err := a.update(ctx); err != nil {
		return nil, err
	}
	return a.describe(ctx, names)
}

// planned matches a line of apt-get --print-uris: the file is name_version_arch.deb.
var planned = regexp.MustCompile(`(?m)^'[^']*' ([^_\s]+)_[^_\s]+_[^_\s]+\.deb \d+`)

func (a *Apt) describe(ctx context.Context, names []string) (*lock.Suite, error) {
	text, err := a.run(ctx, "", "apt-cache", append([]string{"show", "--no-all-versions"}, names...)...)
	if err != nil {
		return nil, fmt.Errorf("describe packages of %s: %w", a.suite, err)
	}
	suite := &lock.Suite{Name: a.suite}
	for stanza := range bytes.SplitSeq(text, []byte("\n\n")) {
		var p lock.Package
		for line := range strings.SplitSeq(string(stanza), "\n") {
			switch key, value, _ := strings.Cut(line, ": "); key {
			case "Package":
				p.Name = value
			case "Version":
				p.Version = value
			case "SHA256":
				p.SHA256 = value
			}
		}
		if p.Name != "" {
			suite.Packages = append(suite.Packages, p)
		}
	}
	if len(suite.Packages) != len(names) {
		return nil, fmt.Errorf("describe packages of %s: asked for %d, got %d", a.suite, len(names),
			len(suite.Packages))
	}
	return suite, nil
}

// Fetch brings all packages of suite into the cache and checks their hashes.
func (a *Apt) Fetch(ctx context.Context, packages []lock.Package) error {
	var missing []string
	for _, p := range packages {
		if !a.cache.Has(p.SHA256) {
			missing = append(missing, p.Name+"="+p.Version)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if err := a.update(ctx); err != nil {
		return err
	}
	directory, err := a.cache.WorkDir("debian")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(directory) }()
	if _, err := a.run(ctx, directory, "apt-get", append([]string{"download"}, missing...)...); err != nil {
		return fmt.Errorf("download packages of %s (if a version is gone, a newer point release replaced it: run "+
			"`lock`): %w", a.suite, err)
	}
	for _, p := range packages {
		if a.cache.Has(p.SHA256) {
			continue
		}
		files, err := filepath.Glob(filepath.Join(directory, p.Name+"_*.deb"))
		if err != nil || len(files) != 1 {
			return fmt.Errorf("download package %s: want one file, got %d", p.Name, len(files))
		}
		if err := a.cache.Keep("package "+p.Name+" "+p.Version, files[0], p.SHA256); err != nil {
			return err
		}
	}
	return nil
}

func (a *Apt) update(ctx context.Context) error {
	if a.updated {
		return nil
	}
	if _, err := a.run(ctx, "", "apt-get", "update"); err != nil {
		return fmt.Errorf("read the package list of Debian %s: %w", a.suite, err)
	}
	a.updated = true
	return nil
}

func (a *Apt) run(ctx context.Context, directory, name string, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, name, append([]string{"-qq", "-o", "Dpkg::Use-Pty=0"}, arguments...)...)
	command.Env = append(os.Environ(), "APT_CONFIG="+a.config, "LC_ALL=C.UTF-8")
	command.Dir = directory
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", name, arguments[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}
