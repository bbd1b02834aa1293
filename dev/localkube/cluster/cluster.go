package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"helenus.io/helenus/dev/localkube/build"
	"helenus.io/helenus/dev/localkube/control"
	"helenus.io/helenus/dev/localkube/state"
	"helenus.io/helenus/dev/localkube/step"
	"helenus.io/helenus/dev/localkube/versions"
)

// Cluster is a cluster that was brought up, by this or an earlier process.
type Cluster struct {
	dir   state.Dir
	state *state.Cluster
	cache *build.Cache
}

// Open finds a cluster that is up.
func Open(name, folder string) (*Cluster, error) {
	dir, err := Locate(name, folder)
	if err != nil {
		return nil, err
	}
	s, err := dir.Load()
	if err != nil {
		return nil, err
	}
	version, err := versions.Parse(s.KubernetesVersion)
	if err != nil {
		return nil, err
	}
	cache, err := build.DefaultCache()
	if err != nil {
		return nil, err
	}
	if s.Cache != "" {
		cache = s.Cache
	}
	return &Cluster{dir: dir, state: s, cache: build.Open(cache, version)}, nil
}

// Name is the cluster's name.
func (c *Cluster) Name() string { return c.state.Name }

// Kubeconfig is the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.dir.Kubeconfig() }

// Dir is the folder of the cluster's state.
func (c *Cluster) Dir() state.Dir { return c.dir }

// State is the cluster's recorded description.
func (c *Cluster) State() state.Cluster { return *c.state }

// Kubectl is the path of the kubectl of the cluster's version. A cluster
// without nodes builds it when it is first asked for.
func (c *Cluster) Kubectl(ctx context.Context, steps *step.Reporter) (string, error) {
	if err := c.cache.Ensure(ctx, steps, []string{build.Kubectl}); err != nil {
		return "", err
	}
	return c.cache.Path(build.Kubectl), nil
}

// plane is the cluster's control plane.
func (c *Cluster) plane() control.Plane {
	return control.Plane{Dir: c.dir, Cluster: c.state, Binary: c.cache.Path}
}

// Up brings the cluster of these options up, or brings up what is missing of it
// after an interruption. It returns once the cluster is ready for use.
func Up(ctx context.Context, o Options) (*Cluster, error) {
	dir, err := Locate(o.Name, o.State)
	if err != nil {
		return nil, err
	}
	unlock, err := dir.Lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	known, err := dir.Load()
	if err != nil && !errors.Is(err, state.ErrNoCluster) {
		return nil, err
	}
	if o, err = o.complete(known); err != nil {
		return nil, err
	}
	version, err := versions.Parse(o.KubernetesVersion)
	if err != nil {
		return nil, err
	}
	if known != nil {
		if err := sameCluster(known, o); err != nil {
			return nil, err
		}
	}
	c := &Cluster{dir: dir, state: known, cache: build.Open(o.Cache, version)}
	steps := step.New(o.Out)
	if o.APIOnly {
		return c, c.upAPIOnly(ctx, o, steps)
	}
	return c, c.upFull(ctx, o, version, steps)
}

// sameCluster refuses options that an existing cluster cannot be turned into.
// More nodes are no such change.
func sameCluster(known *state.Cluster, o Options) error {
	change := func(what string, is, wanted any) error {
		return fmt.Errorf("cluster %s is already there with %s %v, wanted is %v: run `localkube down --name %s` "+
			"first, or choose another --name", known.Name, what, is, wanted, known.Name)
	}
	switch {
	case known.KubernetesVersion != o.KubernetesVersion:
		return change("Kubernetes version", known.KubernetesVersion, o.KubernetesVersion)
	case known.APIOnly != o.APIOnly:
		return change("--api-only", known.APIOnly, o.APIOnly)
	case !slices.Equal(known.APIServerArgs, o.APIServerArgs):
		return change("API server flags", known.APIServerArgs, o.APIServerArgs)
	case !o.APIOnly && len(known.Nodes) > o.Nodes:
		return change("nodes", len(known.Nodes), o.Nodes)
	}
	for _, node := range known.Nodes {
		if want := nodeAt(node.Index, o.Zones); want.Zone != node.Zone {
			return change("node "+node.Name+" in zone", node.Zone, want.Zone)
		}
	}
	return nil
}

// removeState deletes the cluster's folder.
func (c *Cluster) removeState() error {
	if err := os.RemoveAll(string(c.dir)); err != nil {
		return fmt.Errorf("remove the cluster's files: %w", err)
	}
	return nil
}
