package build

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"

	"helenus.io/helenus/dev/localkube/versions"
)

// Names of the binaries that localkube builds.
const (
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubelet           = "kubelet"
	KubeProxy         = "kube-proxy"
	Kubectl           = "kubectl"
	Etcd              = "etcd"
	Pause             = "pause"
	CoreDNS           = "coredns"
	Provisioner       = "provisioner"
	Containerd        = "containerd"
	ContainerdShim    = "containerd-shim-runc-v2"
)

// APIOnly are the binaries of a bare API server.
func APIOnly() []string { return []string{APIServer, Etcd} }

// All are the binaries of a full cluster, in the order in which they are built:
// what shares most with the others comes first.
func All() []string {
	return []string{APIServer, Etcd, ControllerManager, Scheduler, Kubelet, KubeProxy, Kubectl, CoreDNS, Provisioner,
		Pause}
}

// Runtime are the binaries of containerd, which most machines have by themselves.
func Runtime() []string { return []string{Containerd, ContainerdShim} }

// recipe says how one set of binaries is built. Its hash is part of the cache
// key, so whatever changes the outcome must be a field.
type recipe struct {
	Name string
	// Module is what is built, as PATH@VERSION; if empty, Kubernetes or add-ons of it.
	Module  string `json:",omitempty"`
	Version versions.Kubernetes
	// Generation is that of the rules by which go.mod is generated.
	Generation int
	// Addons are modules required beside Kubernetes' own; a recipe without any
	// builds Kubernetes itself.
	Addons map[string]string
	// Packages maps a binary to the package it is built from. A package that
	// starts with "./" is one of Sources.
	Packages map[string]string
	// Sources are the files of the build module, by path.
	Sources map[string]string
	Flags   []string
	LDFlags string
	Target  string
}

// goFlags leave out paths and debug information: nothing here is debugged by
// source, and the compiler is quicker without it.
var goFlags = []string{"-mod=mod", "-trimpath", "-gcflags=all=-dwarf=false"}

// containerdTags leave out what no node here uses.
const containerdTags = "no_btrfs,no_devmapper,no_zfs,no_rdt,no_systemd,no_tracing,urfave_cli_no_docs"

// generation changes with the rules in module.go.
const generation = 1

func recipes(k versions.Kubernetes) []recipe {
	const version = "k8s.io/component-base/version."
	addons := k
	if newest, err := versions.Parse(versions.DefaultKubernetes); err == nil && k.Minor < newest.Minor {
		addons = newest // they are clients, and those of today do not compile with earlier libraries
	}
	const target = runtime.GOOS + "/" + runtime.GOARCH
	return []recipe{{
		Name:    "kubernetes-" + k.String(),
		Version: k, Generation: generation,
		Packages: map[string]string{
			APIServer:         "k8s.io/kubernetes/cmd/kube-apiserver",
			ControllerManager: "k8s.io/kubernetes/cmd/kube-controller-manager",
			Scheduler:         "k8s.io/kubernetes/cmd/kube-scheduler",
			Kubelet:           "k8s.io/kubernetes/cmd/kubelet",
			KubeProxy:         "k8s.io/kubernetes/cmd/kube-proxy",
			Kubectl:           "k8s.io/kubernetes/cmd/kubectl",
			Etcd:              "./etcd",
			Pause:             "./pause",
		},
		Sources: map[string]string{"etcd/main.go": etcdMain, "pause/main.go": pauseMain},
		Flags:   goFlags,
		// Without these Kubernetes calls itself v0.0.0-master and clients refuse it.
		LDFlags: fmt.Sprintf("-s -w -X %[1]sgitVersion=v%[2]s -X %[1]sgitMajor=%[3]d -X %[1]sgitMinor=%[4]d -X "+
			"%[1]sgitTreeState=clean",
			version, k, k.Major, k.Minor),
		Target: target,
	}, {
		Name:    "addons-" + addons.String(),
		Version: addons, Generation: generation,
		Addons: map[string]string{
			"github.com/coredns/coredns":                           "v" + versions.CoreDNS,
			"sigs.k8s.io/sig-storage-lib-external-provisioner/v13": "v" + versions.ProvisionerLibrary,
		},
		Packages: map[string]string{
			CoreDNS:     "./coredns",
			Provisioner: "./provisioner",
		},
		Sources: map[string]string{"coredns/main.go": corednsMain, "provisioner/main.go": provisionerMain},
		Flags:   goFlags,
		LDFlags: "-s -w",
		Target:  target,
	}, {
		Name:       "containerd-" + versions.Containerd,
		Module:     containerdModule + "@v" + versions.Containerd,
		Generation: generation,
		Packages: map[string]string{
			Containerd:     containerdModule + "/cmd/containerd",
			ContainerdShim: containerdModule + "/cmd/containerd-shim-runc-v2",
		},
		Flags:   append(slices.Clone(goFlags), "-tags="+containerdTags),
		LDFlags: "-s -w -X " + containerdModule + "/version.Version=v" + versions.Containerd,
		Target:  target,
	}}
}

// source is the module whose go.mod and go.sum the recipe starts from.
func (r recipe) source() string {
	if r.Module != "" {
		return r.Module
	}
	return kubernetesModule + "@" + r.Version.Module()
}

// folder is the recipe's place in the cache.
func (r recipe) folder() string {
	// Maps are encoded with sorted keys, so equal recipes give equal bytes.
	content, err := json.Marshal(r)
	if err != nil {
		panic("a recipe holds only strings and numbers: " + err.Error())
	}
	sum := sha256.Sum256(content)
	return r.Name + "-" + hex.EncodeToString(sum[:6])
}

func recipeOf(k versions.Kubernetes, binary string) (recipe, error) {
	all := recipes(k)
	i := slices.IndexFunc(all, func(r recipe) bool { return r.Packages[binary] != "" })
	if i < 0 {
		return recipe{}, fmt.Errorf("no recipe builds %q", binary)
	}
	return all[i], nil
}

// The main package of etcd's server module cannot be named by its path.
const etcdMain = `package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
`

// The pause container holds a pod's network namespace; as its PID 1 it has
// nothing to do but to end when told.
const pauseMain = `package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	<-stop
}
`

// CoreDNS with the plugins of our Corefile alone: all of them would take
// several times as long to compile, for cloud SDKs that nothing here calls.
const corednsMain = `package main

import (
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/template"
)

func main() { coremain.Run() }
`

//go:embed provisioner/main.go
var provisionerMain string
