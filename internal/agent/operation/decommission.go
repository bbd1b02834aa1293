package operation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/core/facts"
)

// leavePoll is how often it is looked whether a node has left that leaves.
const leavePoll = 5 * time.Second

// decommission has the node leave the ring, and is done when the node itself says that it has. A
// call that finds another one running waits for that: 4.1 refuses a second one, 5.0 answers it at
// once as if it had succeeded (StorageService#decommission). Since 5.0 the mode says whether one
// failed; 4.1 stays LEAVING, and takes the next call for another attempt.
func decommission(ctx context.Context, t *task) (string, error) {
	for first := !t.resumed; ; first = false {
		ring, err := t.Ring(ctx)
		if err != nil {
			return "", err
		}
		switch {
		case ring.Mode == facts.ModeDecommissioned:
			return "the node has left the ring", nil
		case !first && ring.Mode != facts.ModeLeaving:
			return "", fmt.Errorf("the node does not leave any more: its mode is %s", ring.Mode)
		}
		t.Say(0, 1, "the node leaves the ring")
		if err := t.JVM.Decommission(ctx, t.arguments.Force); err != nil && !errors.Is(err, cassandra.ErrLeaving) {
			return "", err
		}
		if ring, err = t.Ring(ctx); err != nil {
			return "", err
		}
		if ring.Mode != facts.ModeDecommissioned {
			if err := t.Wait(ctx, leavePoll); err != nil {
				return "", fmt.Errorf("await the end of the decommission that runs: %w", err)
			}
		}
	}
}
