package operation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/core/facts"
)

// rebuildPoll is how often it is tried whether another rebuild of the node has ended.
const rebuildPoll = 5 * time.Second

// rebuild waits for one that runs already: Cassandra takes one at a time and refuses the next. It
// does not tell later how that one ended, so that a rebuild which continues without an agent is
// followed by another.
func rebuild(ctx context.Context, t *task) (string, error) {
	return t.eachKeyspace(ctx, "rebuilt", func(name string) error {
		ring, err := t.Ring(ctx)
		if err == nil && !t.resumed && leavesOutStreamed(ring) {
			err = t.JVM.ForgetStreamedRanges(ctx, name)
		}
		if err != nil {
			return err
		}
		for {
			err := t.JVM.Rebuild(ctx, t.arguments.SourceDatacenter, name)
			if !errors.Is(err, cassandra.ErrRebuilding) {
				return err
			}
			if err := t.Wait(ctx, rebuildPoll); err != nil {
				return fmt.Errorf("await the end of the rebuild that runs: %w", err)
			}
		}
	})
}

// leavesOutStreamed says that a rebuild would silently leave out what an earlier stream has
// brought, as 4.1 does; 5.0 streams it again since it was started so. While CQL is closed, as in a
// datacenter that is being added, nobody can forget it; but there an earlier attempt of the same
// rebuild alone has brought anything, and the node takes all writes since before that.
func leavesOutStreamed(r *facts.Ring) bool {
	return strings.HasPrefix(r.ReleaseVersion, "4.") && r.NativeRunning
}
