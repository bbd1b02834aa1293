package pypi

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"helenus.io/helenus/dev/images/internal/cache"
	"helenus.io/helenus/dev/images/internal/layer"
	"helenus.io/helenus/dev/images/internal/lock"
)

// Pip is pip for the Python of an image, which need not be this machine's.
type Pip struct {
	cache *cache.Cache
	// python is the version the wheels must work with: 3.11.
	python   string
	platform string
}

// New returns a Pip for a Python version and Debian architecture.
func New(c *cache.Cache, python, architecture string) (*Pip, error) {
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[architecture]
	if machine == "" {
		return nil, fmt.Errorf("architecture %q: want amd64 or arm64", architecture)
	}
	return &Pip{cache: c, python: python, platform: "manylinux2014_" + machine}, nil
}

// Resolve finds what the requirements (name==version) need, with hashes.
func (p *Pip) Resolve(ctx context.Context, requirements []string) ([]lock.Wheel, error) {
	directory, err := p.cache.WorkDir("pypi")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(directory) }()
	if err := p.download(ctx, directory, strings.Join(requirements, "\n"), false); err != nil {
		return nil, fmt.Errorf("resolve %s: %w", strings.Join(requirements, ", "), err)
	}
	files, err := filepath.Glob(filepath.Join(directory, "*.whl"))
	if err != nil {
		return nil, err
	}
	var wheels []lock.Wheel
	for _, file := range files {
		sha, err := cache.SHA256(file)
		if err != nil {
			return nil, err
		}
		name, version, err := parseWheelName(filepath.Base(file))
		if err != nil {
			return nil, err
		}
		wheels = append(wheels, lock.Wheel{Name: name, Version: version, SHA256: sha})
	}
	return wheels, nil
}

// Fetch brings all wheels into the cache; pip checks the hashes, and so does
// the cache.
func (p *Pip) Fetch(ctx context.Context, wheels []lock.Wheel) error {
	var lines []string
	hashes := map[string]string{}
	for _, w := range wheels {
		if !p.cache.Has(w.SHA256) {
			lines = append(lines, fmt.Sprintf("%s==%s --hash=sha256:%s", w.Name, w.Version, w.SHA256))
			hashes[w.Name] = w.SHA256
		}
	}
	if len(lines) == 0 {
		return nil
	}
	directory, err := p.cache.WorkDir("pypi")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(directory) }()
	if err := p.download(ctx, directory, strings.Join(lines, "\n"), true); err != nil {
		return fmt.Errorf("download wheels: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(directory, "*.whl"))
	if err != nil {
		return err
	}
	for _, file := range files {
		name, _, err := parseWheelName(filepath.Base(file))
		if err != nil {
			return err
		}
		if err := p.cache.Keep("wheel "+name, file, hashes[name]); err != nil {
			return err
		}
	}
	return nil
}

func (p *Pip) download(ctx context.Context, directory, requirements string, hashed bool) error {
	list := filepath.Join(directory, "requirements.txt")
	if err := os.WriteFile(list, []byte(requirements+"\n"), 0o644); err != nil {
		return err
	}
	arguments := []string{"-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--only-binary=:all:",
		"--implementation", "cp", "--python-version", p.python, "--platform", p.platform,
		"--dest", directory, "--requirement", list}
	if hashed {
		arguments = append(arguments, "--require-hashes", "--no-deps")
	}
	out, err := exec.CommandContext(ctx, "python3", arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("pip (package python3-pip): %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// parseWheelName splits a wheel's file name: name-version-python-abi-platform.whl.
func parseWheelName(file string) (name, version string, err error) {
	parts := strings.Split(strings.TrimSuffix(file, ".whl"), "-")
	if len(parts) < 5 {
		return "", "", fmt.Errorf("wheel %q: name has not the form name-version-python-abi-platform", file)
	}
	return strings.ReplaceAll(strings.ToLower(parts[0]), "_", "-"), parts[1], nil
}

// Unpack adds the files of the wheel at path to tree below prefix, if keep says
// so about their names inside the wheel.
func Unpack(path string, tree layer.Tree, prefix string, keep func(name string) bool) error {
	archive, err := zip.OpenReader(path)
	if err != nil {
		return fmt.Errorf("unpack wheel: %w", err)
	}
	defer func() { _ = archive.Close() }()
	for _, file := range archive.File {
		if strings.HasSuffix(file.Name, "/") || !keep(file.Name) {
			continue
		}
		content, err := readFile(file)
		if err != nil {
			return fmt.Errorf("unpack %s: %w", file.Name, err)
		}
		if err := tree.Add(prefix+"/"+file.Name, layer.Entry{Mode: 0o644, Content: content}); err != nil {
			return err
		}
	}
	return nil
}

func readFile(file *zip.File) ([]byte, error) {
	in, err := file.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()
	return io.ReadAll(in)
}
