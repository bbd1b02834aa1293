package cluster

import (
	"context"
	"errors"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

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
	defer unlock()
	c, err := Open(name, folder)
	if errors.Is(err, state.ErrNoCluster) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.down(ctx, step.New(out))
}

// Down stops the cluster and removes everything it made on this machine.
func (c *Cluster) Down(ctx context.Context, out io.Writer) error {
	return Down(ctx, c.state.Name, string(c.dir), out)
}

func (c *Cluster) down(ctx context.Context, steps *step.Reporter) error {
	return steps.Run(ctx, "down "+c.state.Name, func(ctx context.Context, _ *step.Progress) error {
		// Killed, not asked: the data is deleted next, and an API server waits
		// many seconds for its clients before it ends by itself.
		if err := c.stopProcesses(0); err != nil {
			return err
		}
		return c.removeState()
	})
}

// stopProcesses stops the processes of the control plane side by side.
func (c *Cluster) stopProcesses(grace time.Duration) error {
	var group errgroup.Group
	for _, component := range controlComponents() {
		group.Go(func() error { return process.Stop(c.dir.Pid(component), grace) })
	}
	return group.Wait()
}
