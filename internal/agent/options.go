package agent

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/pod"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/node"
)

// Options are what an agent is started with beside its environment.
type Options struct {
	// Root is put before all paths; / in a pod.
	Root string
	// InstallDir of the agent's image has what is handed to the Cassandra container: helenus-init
	// and the Java agents. It is not below Root.
	InstallDir string
	// ListenAddress of the two servers; empty for all addresses.
	ListenAddress string
	// APIServer is its URL; empty for the one that the kubelet names.
	APIServer string
	// Version of the agent.
	Version string
	// Lookup is that of the environment.
	Lookup func(name string) (string, bool)
}

// Defaults are those of a pod.
func Defaults() Options {
	return Options{Root: "/", InstallDir: layout.InstallDir, Lookup: os.LookupEnv}
}

func (o *Options) path(p string) string { return filepath.Join(o.Root, p) }

// defaultGracePeriod is what the operator gives pods.
const defaultGracePeriod = 300 * time.Second

// environment is what the pod says.
type environment struct {
	self        node.Self
	cluster     string
	namespace   string
	memoryLimit int64
	// volumes of the node, data first.
	volumes []pod.Volume
}

// readEnvironment reads it, and names everything that is missing or wrong at once.
func readEnvironment(o Options) (environment, error) {
	var problems []error
	required := func(name string) string {
		value, _ := o.Lookup(name)
		if value == "" {
			problems = append(problems, fmt.Errorf("%s is not set", name))
		}
		return value
	}
	number := func(name string, fallback int64) int64 {
		text, found := o.Lookup(name)
		if !found || text == "" {
			return fallback
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			problems = append(problems, fmt.Errorf("%s is %q, want a whole number of 0 or more", name, text))
		}
		return n
	}
	e := environment{
		cluster:   required(layout.EnvClusterName),
		namespace: required(layout.EnvPodNamespace),
		self: node.Self{
			ClusterUID: types.UID(required(layout.EnvClusterUID)), Node: required(layout.EnvPodName),
			PodUID:      types.UID(required(layout.EnvPodUID)),
			PodTemplate: required(layout.EnvPodTemplate), AgentVersion: o.Version, FactsPort: layout.FactsPort,
		},
		memoryLimit: number(layout.EnvMemoryLimit, 0),
	}
	e.self.GracePeriod = time.Duration(number(layout.EnvGracePeriod,
		int64(defaultGracePeriod/time.Second))) * time.Second
	if ip := required(layout.EnvPodIP); ip != "" {
		address, err := netip.ParseAddr(ip)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s is %q, want an IP address", layout.EnvPodIP, ip))
		}
		e.self.Address = address.Unmap().String()
	}
	if list := required(layout.EnvVolumes); list != "" {
		volumes, err := readVolumes(o, list)
		if err != nil {
			problems = append(problems, err)
		}
		e.volumes = volumes
	}
	return e, errors.Join(problems...)
}

// readVolumes reads name=path,… with data first.
func readVolumes(o Options, list string) ([]pod.Volume, error) {
	var out []pod.Volume
	for entry := range strings.SplitSeq(list, ",") {
		name, directory, found := strings.Cut(entry, "=")
		if !found || name == "" || !filepath.IsAbs(directory) {
			return nil, fmt.Errorf("%s has %q, want <name>=<absolute path>", layout.EnvVolumes, entry)
		}
		out = append(out, pod.Volume{Name: name, Directory: o.path(directory)})
	}
	if out[0].Name != v1alpha1.VolumeData || out[0].Directory != o.path(layout.DataDir) {
		return nil, fmt.Errorf("%s is %q, want %s=%s first", layout.EnvVolumes, list, v1alpha1.VolumeData,
			layout.DataDir)
	}
	return out, nil
}
