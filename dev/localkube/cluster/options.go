package cluster

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"helenus.io/helenus/dev/localkube/build"
	"helenus.io/helenus/dev/localkube/network"
	"helenus.io/helenus/dev/localkube/state"
	"helenus.io/helenus/dev/localkube/versions"
)

// DefaultName is the name of the cluster that commands mean when none is given.
const DefaultName = "helenus"

// Options say what cluster to bring up. The zero value of a field means its
// default.
type Options struct {
	// Name tells clusters apart. Default: helenus.
	Name string
	// State is the folder of the cluster's state. Default: a folder of the
	// cluster's name in /var/lib/localkube, for users other than root in
	// $XDG_STATE_HOME/localkube.
	State string
	// Cache is the folder of built binaries. Default: $HELENUS_CACHE, or
	// helenus in the user's cache folder.
	Cache string
	// KubernetesVersion is a release such as 1.35.4.
	KubernetesVersion string
	// Nodes (default 3) are spread in turn over Zones (default 3) zones, which
	// are called a, b, c, ...
	Nodes, Zones int
	// APIOnly starts etcd and the API server without nodes, which needs no
	// root. Controllers adds the controller manager.
	APIOnly, Controllers bool
	// APIServerArgs are flags added to the API server's: --feature-gates=...
	APIServerArgs []string
	// Executable is the localkube program that runs the nodes. Default: this
	// program. Only a cluster with nodes needs it.
	Executable string
	// Out receives the steps. Default: os.Stderr.
	Out io.Writer
}

// Defaults of a cluster with nodes.
const (
	DefaultNodes = 3
	DefaultZones = 3
	// maxZones is bounded by the letters that name them.
	maxZones = 26
)

// Locate finds the state folder of a cluster by its name or, when given, its
// folder.
func Locate(name, folder string) (state.Dir, error) {
	if folder != "" {
		abs, err := filepath.Abs(folder)
		if err != nil {
			return "", fmt.Errorf("resolve the state folder: %w", err)
		}
		return state.Dir(abs), nil
	}
	if name == "" {
		name = DefaultName
	}
	if err := state.ValidateName(name); err != nil {
		return "", err
	}
	root, err := state.Root()
	if err != nil {
		return "", err
	}
	return state.Dir(filepath.Join(root, name)), nil
}

// complete checks the options and fills in defaults: what is not given is as it
// is in the cluster that is there already, if there is one.
func (o Options) complete(known *state.Cluster) (Options, error) {
	if known != nil {
		o = o.like(known)
	}
	if o.Name == "" {
		o.Name = DefaultName
	}
	if err := state.ValidateName(o.Name); err != nil {
		return o, err
	}
	if o.Cache == "" {
		cache, err := build.DefaultCache()
		if err != nil {
			return o, err
		}
		o.Cache = cache
	}
	if o.KubernetesVersion == "" {
		o.KubernetesVersion = versions.DefaultKubernetes
	}
	if o.Nodes == 0 {
		o.Nodes = DefaultNodes
	}
	if o.Zones == 0 {
		o.Zones = min(DefaultZones, o.Nodes)
	}
	if o.Out == nil {
		o.Out = os.Stderr
	}
	switch {
	case o.APIOnly:
		return o, nil
	case o.Nodes < 1 || o.Nodes > network.MaxNodes:
		return o, fmt.Errorf("nodes: %d is not between 1 and %d", o.Nodes, network.MaxNodes)
	case o.Zones < 1 || o.Zones > maxZones:
		return o, fmt.Errorf("zones: %d is not between 1 and %d", o.Zones, maxZones)
	case o.Zones > o.Nodes:
		return o, fmt.Errorf("zones: %d zones need at least as many nodes, there are %d", o.Zones, o.Nodes)
	}
	return o, nil
}

// like takes over from a cluster what the options leave open.
func (o Options) like(known *state.Cluster) Options {
	if o.KubernetesVersion == "" {
		o.KubernetesVersion = known.KubernetesVersion
	}
	if o.Cache == "" {
		o.Cache = known.Cache
	}
	if o.APIServerArgs == nil {
		o.APIServerArgs = known.APIServerArgs
	}
	if o.Nodes == 0 {
		o.Nodes = len(known.Nodes)
	}
	if o.Zones == 0 {
		zones := make(map[string]bool)
		for _, n := range known.Nodes {
			zones[n.Zone] = true
		}
		o.Zones = len(zones)
	}
	return o
}

// nodeAt is the node with that index, counted from 1: n1 in zone a, n2 in b, ...
func nodeAt(index, zones int) state.Node {
	return state.Node{Name: fmt.Sprintf("n%d", index), Zone: string(rune('a' + (index-1)%zones)), Index: index}
}
