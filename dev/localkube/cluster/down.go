package cluster

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"helenus.io/helenus/dev/localkube/build"
	"helenus.io/helenus/dev/localkube/node"
	"helenus.io/helenus/dev/localkube/process"
	"helenus.io/helenus/dev/localkube/state"
	"helenus.io/helenus/dev/localkube/step"
)

// Down stops the cluster and removes everything it made on this machine. The
// binaries in the cache stay. That there is no such cluster is no error.
func Down(ctx context.Context, name, folder string, out io.Writer) error {
	dir, err := Locate(name, folder)
	if err != nil {
		return err
	}
	unlock, err := dir.Lock()
	if err != nil {
		return err
	}
	defer func() {
		unlock()
		removeRoot(dir)
	}()
	steps := step.New(out)
	c, err := Open(name, folder)
	if errors.Is(err, state.ErrNoCluster) {
		steps.Say("There is no cluster in %s.", dir)
		return nil
	}
	if err != nil {
		return err
	}
	return steps.Run(ctx, "down "+c.state.Name, c.down)
}

// removeRoot removes the folder of all clusters after the last of them, with the
// lock's file gone. A folder that the user chose for one cluster is not ours.
func removeRoot(dir state.Dir) {
	if root, err := state.Root(); err == nil && filepath.Dir(string(dir)) == root {
		// Fails, as it should, while there is another cluster.
		_ = os.Remove(root)
	}
}

// Down stops the cluster and removes everything it made on this machine.
func (c *Cluster) Down(ctx context.Context, out io.Writer) error {
	return Down(ctx, c.state.Name, string(c.dir), out)
}

// down kills and does not ask: the data is deleted next, and an API server waits
// many seconds for its clients before it ends by itself.
func (c *Cluster) down(context.Context, *step.Progress) error {
	if err := errors.Join(c.stopProcesses(0), c.removeNodes()); err != nil {
		return err
	}
	return c.removeState()
}

// components are all processes on the host.
func components() []string {
	return []string{
		build.Scheduler, build.ControllerManager, build.APIServer, build.Etcd,
		build.CoreDNS, build.Provisioner, registryComponent,
	}
}

// stopProcesses stops the processes on the host side by side.
func (c *Cluster) stopProcesses(grace time.Duration) error {
	var group errgroup.Group
	for _, component := range components() {
		group.Go(func() error { return process.Stop(c.dir.Pid(component), grace) })
	}
	return group.Wait()
}

// removeNodes kills the nodes side by side and takes away what they shared.
func (c *Cluster) removeNodes() error {
	if c.state.APIOnly {
		return nil
	}
	var group errgroup.Group
	for i := range c.state.Nodes {
		group.Go(c.node(&c.state.Nodes[i]).Kill)
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := node.RemoveCgroupRoot(c.state.Name); err != nil {
		return err
	}
	unlock, err := state.LockAll()
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.plan().RemoveBridge(c.state.Name); err != nil {
		return err
	}
	return restoreSysctls()
}
