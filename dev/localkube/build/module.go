package build

import (
	"fmt"
	"strings"

	"golang.org/x/mod/modfile"

	"helenus.io/helenus/dev/localkube/versions"
)

const (
	kubernetesModule = "k8s.io/kubernetes"
	containerdModule = "github.com/containerd/containerd/v2"
	// stagingPrefix is how Kubernetes' own go.mod refers to the modules that it
	// keeps in its tree and publishes separately.
	stagingPrefix = "./staging/src/"
)

// kubernetesGoMod turns the go.mod of k8s.io/kubernetes into that of a module
// which requires it. Everything keeps the version upstream tested with; only
// the replacements by paths inside the Kubernetes tree, which a module from
// the proxy lacks, become the published modules of the same release.
func kubernetesGoMod(upstream []byte, k versions.Kubernetes) ([]byte, error) {
	f, err := parseUpstream(upstream)
	if err != nil {
		return nil, err
	}
	if err := f.AddModuleStmt("localkube.build/kubernetes"); err != nil {
		return nil, fmt.Errorf("name the build module: %w", err)
	}
	required := make(map[string]bool)
	for _, r := range f.Require {
		required[r.Mod.Path] = true
	}
	for _, module := range stagingModules(f) {
		if err := f.AddReplace(module, "", module, k.Staging()); err != nil {
			return nil, fmt.Errorf("replace %s: %w", module, err)
		}
		if !required[module] {
			continue
		}
		// Upstream requires them as v0.0.0, which only its paths can satisfy.
		if err := f.AddRequire(module, k.Staging()); err != nil {
			return nil, fmt.Errorf("require %s: %w", module, err)
		}
	}
	if err := f.AddRequire(kubernetesModule, k.Module()); err != nil {
		return nil, fmt.Errorf("require %s: %w", kubernetesModule, err)
	}
	return format(f)
}

// addonsGoMod is the go.mod for CoreDNS and the provisioner. It pins every
// library that Kubernetes uses to the version Kubernetes uses: with equal
// versions the Go build cache compiles a shared package such as k8s.io/api
// once, which is most of the work of these two.
func addonsGoMod(upstream []byte, k versions.Kubernetes, addons map[string]string) ([]byte, error) {
	kube, err := parseUpstream(upstream)
	if err != nil {
		return nil, err
	}
	f := new(modfile.File)
	if err := f.AddModuleStmt("localkube.build/addons"); err != nil {
		return nil, fmt.Errorf("name the build module: %w", err)
	}
	if err := f.AddGoStmt(kube.Go.Version); err != nil {
		return nil, fmt.Errorf("set the language version: %w", err)
	}
	for module, version := range addons {
		if err := f.AddRequire(module, version); err != nil {
			return nil, fmt.Errorf("require %s: %w", module, err)
		}
	}
	pins := make(map[string]string)
	for _, r := range kube.Require {
		pins[r.Mod.Path] = r.Mod.Version
	}
	for _, module := range stagingModules(kube) {
		pins[module] = k.Staging()
	}
	for module, version := range pins {
		if err := f.AddReplace(module, "", module, version); err != nil {
			return nil, fmt.Errorf("pin %s: %w", module, err)
		}
	}
	f.SortBlocks()
	return format(f)
}

// moduleGoMod turns the go.mod of a module, given as PATH@VERSION, into that of one which requires
// it: the module's programs are built with the libraries that upstream released them with.
func moduleGoMod(upstream []byte, module string) ([]byte, error) {
	path, version, _ := strings.Cut(module, "@")
	f, err := modfile.Parse("go.mod", upstream, nil)
	if err != nil {
		return nil, fmt.Errorf("parse the go.mod of %s: %w", path, err)
	}
	if f.Module == nil || f.Module.Mod.Path != path {
		return nil, fmt.Errorf("parse the go.mod of %s: it names another module", path)
	}
	if err := f.AddModuleStmt("localkube.build/module"); err != nil {
		return nil, fmt.Errorf("name the build module: %w", err)
	}
	if err := f.AddRequire(path, version); err != nil {
		return nil, fmt.Errorf("require %s: %w", path, err)
	}
	return format(f)
}

func parseUpstream(content []byte) (*modfile.File, error) {
	f, err := modfile.Parse("go.mod", content, nil)
	if err != nil {
		return nil, fmt.Errorf("parse the go.mod of %s: %w", kubernetesModule, err)
	}
	if f.Module == nil || f.Module.Mod.Path != kubernetesModule || f.Go == nil {
		return nil, fmt.Errorf("parse the go.mod of %s: it names no such module or no language version",
			kubernetesModule)
	}
	if len(stagingModules(f)) == 0 {
		return nil, fmt.Errorf("parse the go.mod of %s: it replaces no module under %s, so its layout has changed",
			kubernetesModule, stagingPrefix)
	}
	return f, nil
}

func stagingModules(f *modfile.File) []string {
	var modules []string
	for _, r := range f.Replace {
		if strings.HasPrefix(r.New.Path, stagingPrefix) {
			modules = append(modules, r.Old.Path)
		}
	}
	return modules
}

func format(f *modfile.File) ([]byte, error) {
	f.Cleanup()
	content, err := f.Format()
	if err != nil {
		return nil, fmt.Errorf("format go.mod: %w", err)
	}
	return content, nil
}
