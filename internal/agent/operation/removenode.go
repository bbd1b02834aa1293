package operation

import (
	"context"
	"errors"
	"fmt"

	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/core/node/operation"
)

// removeNode has the ring go on without a member that is down, and is done when this node does not
// see it any more. A call that finds another one running waits for that.
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
			return "the ring goes on without host id " + hostID, nil
		case up != "":
			return "", fmt.Errorf("host id %s is up at %s", hostID, up)
		}
		t.Say(0, 1, "others take over what host id "+hostID+" had")
		err = t.JVM.RemoveNode(ctx, hostID)
		if err != nil && !errors.Is(err, cassandra.ErrRemoving) {
			return "", err
		}
		if err := t.Wait(ctx, gossipPoll); err != nil {
			return "", fmt.Errorf("await the removal of host id %s: %w", hostID, err)
		}
	}
}
