package operation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"helenus.io/helenus/internal/core/node/operation"
)

// gossipPoll is how often it is looked whether a member has forgotten an endpoint, which it does
// for a minute.
const gossipPoll = 2 * time.Second

// assassinate has the members forget the stale endpoint of a failed join, once this one has
// forgotten it by itself.
func assassinate(ctx context.Context, t *task) (string, error) {
	endpoint := t.arguments.Endpoint
	for {
		ring, err := t.Ring(ctx)
		if err != nil {
			return "", err
		}
		switch state, why := operation.GossipStateAt(ring, endpoint, t.NodesAt(ctx, endpoint)); state {
		case operation.GossipLeft:
			return "members take " + endpoint + " for one that has left", nil
		case operation.GossipAbsent:
			if err := t.JVM.Assassinate(ctx, endpoint); err != nil {
				return "", err
			}
			return "members hear that " + endpoint + " has left", nil
		case operation.GossipAlive:
			return "", errors.New(why)
		case operation.GossipPresent:
			t.Say(0, 1, "waits until this member has forgotten "+endpoint+
				": then it takes seconds, and stands still for none")
		}
		if err := t.Wait(ctx, gossipPoll); err != nil {
			return "", fmt.Errorf("await that %s is forgotten: %w", endpoint, err)
		}
	}
}
