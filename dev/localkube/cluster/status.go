package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"helenus.io/helenus/dev/localkube/audit"
	"helenus.io/helenus/dev/localkube/build"
	"helenus.io/helenus/dev/localkube/network"
	"helenus.io/helenus/dev/localkube/process"
	"helenus.io/helenus/dev/localkube/registry"
)

// Status is what one sees of a cluster.
type Status struct {
	Name, KubernetesVersion, Server, Kubeconfig string
	// Components are the processes on the host.
	Components []ComponentStatus
	Nodes      []NodeStatus
	// Disk is what the cluster's folder takes, in bytes: images, volumes, logs.
	Disk int64
}

// ComponentStatus is a process on the host; Pid is 0 when it does not run.
type ComponentStatus struct {
	Name string
	Pid  int
	// Memory is what it has resident, in bytes.
	Memory int64
}

// NodeStatus is a node: State is ready, killed, partitioned, or why it is not
// ready. Memory is what its daemons and containers have resident, in bytes, with
// pages that several share counted for each.
type NodeStatus struct {
	Name, Zone, Address, State string
	Memory                     int64
}

// Healthy tells whether everything runs that should.
func (s Status) Healthy() bool {
	return !slices.ContainsFunc(s.Components, func(c ComponentStatus) bool { return c.Pid == 0 }) &&
		!slices.ContainsFunc(s.Nodes, func(n NodeStatus) bool { return n.State != nodeReady })
}

const nodeReady = "ready"

// Status looks at the cluster's processes and asks its API server for the nodes.
func (c *Cluster) Status(ctx context.Context) Status {
	s := Status{
		Name: c.state.Name, KubernetesVersion: c.state.KubernetesVersion,
		Server: fmt.Sprintf("https://%s:%d", c.state.Address, c.state.APIPort), Kubeconfig: c.Kubeconfig(),
	}
	for _, name := range c.expected() {
		pid, ok := process.Alive(c.dir.Pid(name))
		if !ok {
			pid = 0
		}
		s.Components = append(s.Components, ComponentStatus{Name: name, Pid: pid, Memory: resident(pid)})
	}
	var list nodeList
	client, err := c.Client()
	if err == nil {
		err = client.Get(ctx, "/api/v1/nodes", &list)
	}
	why := list.notReady()
	for i := range c.state.Nodes {
		n := &c.state.Nodes[i]
		status := NodeStatus{Name: n.Name, Zone: n.Zone,
			Address: network.PlanFor(c.state.Subnet).Node(n.Index).String(), State: nodeReady}
		pid, running := c.node(n).Pid()
		if running {
			status.Memory = residentBelow(pid)
		}
		switch {
		case n.Killed:
			status.State = "killed"
		case !running:
			status.State = "does not run; `localkube up` starts it"
		case n.Partitioned:
			status.State = "partitioned"
		case err != nil:
			status.State = "unknown: " + err.Error()
		case why[n.Name] != "":
			status.State = why[n.Name]
		}
		s.Nodes = append(s.Nodes, status)
	}
	s.Disk = diskUsage(string(c.dir))
	return s
}

// expected are the components that this kind of cluster has.
func (c *Cluster) expected() []string {
	if !c.state.APIOnly {
		return components()
	}
	if c.state.Controllers {
		return []string{build.ControllerManager, build.APIServer, build.Etcd}
	}
	return []string{build.APIServer, build.Etcd}
}

// Load gives the cluster's nodes the images of a file: a tar of `docker save`, a
// tar or a folder in OCI layout.
func (c *Cluster) Load(ctx context.Context, file string) ([]registry.Loaded, error) {
	if c.state.APIOnly {
		return nil, fmt.Errorf("cluster %s has no nodes that could run an image: it was started with --api-only",
			c.state.Name)
	}
	return registry.Load(ctx, registry.Address(c.plan()), file)
}

// Audit counts the requests to the API server.
func (c *Cluster) Audit(f audit.Filter) ([]audit.Count, error) {
	return audit.SummariseFile(c.dir.Audit(), f)
}

// LogFile finds the log of a component, on a node if one is given.
func (c *Cluster) LogFile(component, node string) (string, error) {
	if node != "" {
		if _, err := c.state.Node(node); err != nil {
			return "", err
		}
		component = node + "/" + component
	}
	file := c.dir.Log(component)
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("there is no log of %q; there are: %s", component, strings.Join(c.logs(), ", "))
	}
	return file, nil
}

// logs names the components that have a log; those of nodes as NODE/COMPONENT.
func (c *Cluster) logs() []string {
	base := filepath.Dir(c.dir.Log("x"))
	var names []string
	for _, pattern := range []string{"*.log", "*/*.log"} {
		// The pattern is well-formed, which is all that Glob complains about.
		files, _ := filepath.Glob(filepath.Join(base, pattern))
		for _, file := range files {
			name, err := filepath.Rel(base, strings.TrimSuffix(file, ".log"))
			if err == nil {
				names = append(names, name)
			}
		}
	}
	return names
}
