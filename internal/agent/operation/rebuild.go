package operation

import (
	"context"
	"strings"

	"helenus.io/helenus/internal/core/facts"
)

func rebuild(ctx context.Context, t *task) (string, error) {
	return t.eachKeyspace(ctx, "rebuilt", func(name string) error {
		ring, err := t.Ring(ctx)
		if err == nil && leavesOutStreamed(ring) {
			err = t.JVM.ForgetStreamedRanges(ctx, name)
		}
		if err != nil {
			return err
		}
		return t.JVM.Rebuild(ctx, t.arguments.SourceDatacenter, name)
	})
}

// leavesOutStreamed says that a rebuild would silently leave out what an earlier stream has brought,
// as 4.1 does; 5.0 streams it again since it was started so. While CQL is closed, as in a datacenter
// that is being added, nobody can forget it; but there an earlier attempt of the same rebuild alone
// has brought anything, and the node takes all writes since before that.
func leavesOutStreamed(r *facts.Ring) bool {
	return strings.HasPrefix(r.ReleaseVersion, "4.") && r.NativeRunning
}
