package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"

	"helenus.io/helenus/dev/localkube/build"
	"helenus.io/helenus/dev/localkube/state"
	"helenus.io/helenus/dev/localkube/step"
)

const loopback = "127.0.0.1"

// portTries is how often a new API server gets other ports after the kernel has
// given one of the first choice to somebody else.
const portTries = 3

// upAPIOnly starts etcd and the API server, unprivileged, on loopback ports.
func (c *Cluster) upAPIOnly(ctx context.Context, o Options, steps *step.Reporter) error {
	binaries := build.APIOnly()
	if o.Controllers {
		binaries = append(binaries, build.ControllerManager)
	}
	if err := c.checkBuild(ctx, o, binaries); err != nil {
		return err
	}
	if err := c.cache.Ensure(ctx, steps, binaries); err != nil {
		return err
	}
	created := c.state == nil
	if created {
		c.state = &state.Cluster{
			Name: o.Name, KubernetesVersion: o.KubernetesVersion, Cache: o.Cache,
			APIOnly: true, APIServerArgs: o.APIServerArgs, Address: loopback,
		}
	}
	c.state.Controllers = c.state.Controllers || o.Controllers
	return steps.Run(ctx, "API server", func(ctx context.Context, p *step.Progress) error {
		for try := 1; ; try++ {
			if created {
				if err := c.choosePorts(ctx); err != nil {
					return err
				}
			}
			err := c.startAPIOnly(ctx)
			if err == nil {
				p.Note("%s:%d", c.state.Address, c.state.APIPort)
				return nil
			}
			taken := strings.Contains(err.Error(), "address already in use")
			if !created || !taken || try == portTries {
				return err
			}
			if err := c.stopProcesses(0); err != nil {
				return err
			}
			if err := os.RemoveAll(string(c.dir)); err != nil {
				return fmt.Errorf("remove the files of a start that failed: %w", err)
			}
		}
	})
}

func (c *Cluster) startAPIOnly(ctx context.Context) error {
	if err := c.dir.Save(c.state); err != nil {
		return err
	}
	plane := c.plane()
	if err := plane.Prepare(); err != nil {
		return err
	}
	if err := plane.StartAPI(ctx); err != nil {
		return err
	}
	if !c.state.Controllers {
		return nil
	}
	return plane.StartControllers()
}

// choosePorts takes free ports from the kernel. All are held until the last is
// chosen, so that they differ.
func (c *Cluster) choosePorts(ctx context.Context) error {
	for _, port := range []*int{&c.state.APIPort, &c.state.EtcdPort, &c.state.EtcdPeerPort, &c.state.ManagerPort} {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(c.state.Address, "0"))
		if err != nil {
			return fmt.Errorf("find a free port: %w", err)
		}
		defer func() { _ = l.Close() }()
		*port = l.Addr().(*net.TCPAddr).Port
	}
	return nil
}
