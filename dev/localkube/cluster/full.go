package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"helenus.io/helenus/dev/localkube/addon"
	"helenus.io/helenus/dev/localkube/apiclient"
	"helenus.io/helenus/dev/localkube/build"
	"helenus.io/helenus/dev/localkube/network"
	"helenus.io/helenus/dev/localkube/preflight"
	"helenus.io/helenus/dev/localkube/process"
	"helenus.io/helenus/dev/localkube/registry"
	"helenus.io/helenus/dev/localkube/state"
	"helenus.io/helenus/dev/localkube/step"
	"helenus.io/helenus/dev/localkube/versions"
)

// Ports of a cluster with nodes. Its addresses are its own, so every cluster
// has the same.
const (
	apiPort       = 6443
	etcdPort      = 2379
	etcdPeerPort  = 2380
	managerPort   = 10257
	schedulerPort = 10259
)

// registryComponent is the name of the registry's process.
const registryComponent = "registry"

// upFull brings a cluster with nodes up.
func (c *Cluster) upFull(ctx context.Context, o Options, version versions.Kubernetes, steps *step.Reporter) error {
	binaries, err := c.checkMachine(ctx, o, version, steps)
	if err != nil {
		return err
	}
	if err := c.cache.Ensure(ctx, steps, binaries); err != nil {
		return err
	}
	if err := c.settle(o, binaries); err != nil {
		return err
	}
	if err := c.installExecutable(ctx, o); err != nil {
		return err
	}
	if err := c.checkPorts(ctx); err != nil {
		return err
	}
	if err := steps.Run(ctx, "registry and images", c.startRegistry); err != nil {
		return err
	}
	if err := steps.Run(ctx, "control plane", c.startControlPlane); err != nil {
		return err
	}
	return steps.Run(ctx, "DNS, storage and nodes", c.startNodes)
}

// checkMachine looks for what would fail later, and says what binaries the cluster needs.
func (c *Cluster) checkMachine(ctx context.Context, o Options, version versions.Kubernetes,
	steps *step.Reporter) ([]string, error) {
	if err := preflight.Root(); err != nil {
		return nil, err
	}
	machine, err := preflight.ThisMachine()
	if err != nil {
		return nil, err
	}
	if err := preflight.Kernel(machine); err != nil {
		return nil, err
	}
	if err := preflight.Disk(string(c.dir), preflight.ClusterDisk, "a cluster"); err != nil {
		return nil, err
	}
	if err := preflight.Packages(ctx, steps); err != nil {
		return nil, err
	}
	binaries := build.All()
	serves, err := preflight.Containerd(ctx, version)
	if err != nil {
		return nil, err
	}
	if !serves {
		binaries = append(binaries, build.Runtime()...)
	}
	if err := c.checkBuild(ctx, o, binaries); err != nil {
		return nil, err
	}
	rules, err := preflight.ForwardRules(ctx)
	if err != nil {
		return nil, err
	}
	return binaries, preflight.Firewall(machine, rules)
}

// checkBuild looks for what a build needs, if there is something to build.
func (c *Cluster) checkBuild(ctx context.Context, o Options, binaries []string) error {
	if len(c.cache.Missing(binaries)) == 0 {
		return nil
	}
	if err := preflight.Toolchain(ctx); err != nil {
		return err
	}
	return preflight.Disk(o.Cache, preflight.BuildDisk, "building Kubernetes")
}

// settle records the cluster: for a new one it chooses the subnet and makes the
// bridge at once, so that another cluster started now chooses another.
func (c *Cluster) settle(o Options, binaries []string) error {
	unlock, err := state.LockAll()
	if err != nil {
		return err
	}
	defer unlock()
	if c.state == nil {
		used, err := network.InUse()
		if err != nil {
			return err
		}
		plan, err := network.Choose(used)
		if err != nil {
			return err
		}
		c.state = &state.Cluster{
			Name: o.Name, KubernetesVersion: o.KubernetesVersion, Cache: o.Cache,
			APIServerArgs: o.APIServerArgs, Address: plan.ControlPlane().String(),
			APIPort: apiPort, EtcdPort: etcdPort, EtcdPeerPort: etcdPeerPort, ManagerPort: managerPort,
			Subnet: plan.Octet(),
		}
	}
	c.state.Containerd = ""
	if slices.Contains(binaries, build.Containerd) {
		c.state.Containerd = filepath.Dir(c.cache.Path(build.Containerd))
	}
	for i := len(c.state.Nodes) + 1; i <= o.Nodes; i++ {
		c.state.Nodes = append(c.state.Nodes, nodeAt(i, o.Zones))
	}
	if err := c.dir.Save(c.state); err != nil {
		return err
	}
	if err := saveSysctls(); err != nil {
		return err
	}
	return c.plan().MakeBridge(c.state.Name)
}

func (c *Cluster) plan() network.Plan { return network.PlanFor(c.state.Subnet) }

// installExecutable puts a copy of localkube into the cluster's folder: `go run`
// deletes its own when it ends, and the nodes are started again later.
func (c *Cluster) installExecutable(ctx context.Context, o Options) error {
	target := c.dir.Executable()
	source := o.Executable
	if source == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find localkube's own program: %w", err)
		}
		source = self
	}
	if strings.HasSuffix(source, ".test") {
		return buildExecutable(ctx, target)
	}
	if source == target {
		return nil
	}
	content, err := os.ReadFile(source)
	if err != nil {
		return fmt.Errorf("read localkube's own program: %w", err)
	}
	return state.WriteFile(target, content, 0o755)
}

// buildExecutable compiles localkube: a test in Go that brings a cluster up is
// no localkube itself, but its module can build one.
func buildExecutable(ctx context.Context, target string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", target, "helenus.io/helenus/dev/localkube")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build localkube: %w: %s", err, out)
	}
	return nil
}

// checkPorts looks whether somebody else has the ports of what does not run.
func (c *Cluster) checkPorts(ctx context.Context) error {
	address := c.plan().ControlPlane()
	for _, p := range []struct {
		component string
		address   netip.Addr
		port      int
	}{
		{build.APIServer, address, apiPort},
		{build.Etcd, address, etcdPort},
		{build.Etcd, address, etcdPeerPort},
		{build.ControllerManager, address, managerPort},
		{build.Scheduler, address, schedulerPort},
		{registryComponent, address, int(netip.MustParseAddrPort(registry.Address(c.plan())).Port())},
		{build.CoreDNS, c.plan().DNS(), 53},
	} {
		if _, ok := process.Alive(c.dir.Pid(p.component)); ok {
			continue
		}
		if err := preflight.Listen(ctx, p.address, p.port, p.component); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) startRegistry(ctx context.Context, _ *step.Progress) error {
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return fmt.Errorf("find busybox: %w", err)
	}
	address := registry.Address(c.plan())
	server, err := process.Start(process.Spec{
		Name: registryComponent, Path: c.dir.Executable(),
		Args:    []string{registry.ServeCommand, address, c.dir.Data(registryComponent)},
		PidFile: c.dir.Pid(registryComponent), LogFile: c.dir.Log(registryComponent),
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return process.WaitFor(ctx, 20*time.Millisecond, func(ctx context.Context) error {
		return registry.PushOwn(ctx, address, c.cache.Path(build.Pause), busybox)
	}, server)
}

func (c *Cluster) startControlPlane(ctx context.Context, p *step.Progress) error {
	plane := c.plane()
	if err := plane.Prepare(); err != nil {
		return err
	}
	if err := plane.StartAPI(ctx); err != nil {
		return err
	}
	p.Note("%s:%d", c.state.Address, c.state.APIPort)
	return plane.StartControllers()
}

// startNodes starts the add-ons and, side by side, all nodes that nobody has
// killed, and waits until they are ready.
func (c *Cluster) startNodes(ctx context.Context, p *step.Progress) error {
	client, err := c.plane().Client()
	if err != nil {
		return err
	}
	since := time.Now()
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return addon.Addons{Dir: c.dir, Cluster: c.state, Binary: c.cache.Path}.Start(groupCtx, client)
	})
	var expected []string
	for i := range c.state.Nodes {
		n := &c.state.Nodes[i]
		if n.Killed {
			continue
		}
		if !n.Partitioned {
			expected = append(expected, n.Name)
		}
		group.Go(func() error {
			_, running := c.node(n).Pid()
			if err := c.node(n).Start(groupCtx); err != nil {
				return err
			}
			// A node that is started anew has lost its firewall rules.
			if n.Partitioned && !running {
				return c.node(n).Partition(groupCtx)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return c.awaitNodes(ctx, client, p, expected, since)
}

// nodeFolder is the folder of kubelet and kube-proxy in the cache.
func (c *Cluster) nodeFolder() string { return filepath.Dir(c.cache.Path(build.Kubelet)) }

// Client is a client of the cluster's API as its administrator.
func (c *Cluster) Client() (*apiclient.Client, error) { return c.plane().Client() }
