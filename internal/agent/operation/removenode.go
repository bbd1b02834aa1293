package operation

import (
	"context"
	"errors"
	"fmt"

	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/core/node/operation"
)

// removeNode removes a member that is down from the ring, and succeeds once this node no longer
// sees it as a member. If another removal runs on this node, it waits for that.
func removeNode(ctx context.Context, t *task) (string, error) {
	hostID := t.arguments.HostID
	for first := true; ; first = false {
		ring, err := t.Ring(ctx)
		if err != nil {
			return "", err
		}
		switch known, up := operation.MemberAt(ring, hostID); {
		case !known && first && !t.resumed:
			return "", fmt.Errorf("this node sees no member with host id %s", hostID)
		case !known:
			return "host id " + hostID + " is removed from the ring", nil
		case up != "":
			return "", fmt.Errorf("host id %s is up at %s", hostID, up)
		}
		t.Say(0, 1, "removes host id "+hostID+": the new owners stream its ranges")
		err = t.JVM.RemoveNode(ctx, hostID)
		if err != nil && !errors.Is(err, cassandra.ErrRemoving) {
			return "", err
		}
		if err := t.Wait(ctx, gossipPoll); err != nil {
			return "", fmt.Errorf("await the removal of host id %s: %w", hostID, err)
		}
	}
}
