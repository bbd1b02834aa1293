package observe

import (
	"context"
	"net"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
)

// reachInterval is the least time between two tries to reach CQL of a ring.
const reachInterval = 5 * time.Minute

// reach is what came of the last try to reach CQL of a ring.
type reach struct {
	tried time.Time
	// it is nil until a try has ended.
	it *bool
}

// ReachCQL connects to CQL of a pod and says nothing there. A policy that is enforced has that take
// as long as it may.
func ReachCQL(ctx context.Context, address string) bool {
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp",
		net.JoinHostPort(address, strconv.Itoa(layout.NativePort)))
	if err != nil {
		return false
	}
	_ = connection.Close()
	return true
}

// reach puts into a snapshot whether the operator reaches CQL of the ring, which is tried now and
// then beside the passes, at one node that serves and whose agent answers, and only if the network
// policy of the ring forbids it.
func (a *Agents) reach(key types.NamespacedName, s *facts.Snapshot) {
	if a.Reach == nil {
		return
	}
	address := ""
	for _, n := range s.Records() {
		if t, ok := targetOf(key, s, n); ok && n.Agent != nil && n.Record.Status.Ready {
			address = t.Address
			break
		}
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if !s.CQLForbidden() {
		delete(a.reaches, key)
		return
	}
	r, now := a.reaches[key], a.Threads.Now()
	if r == nil {
		if a.reaches == nil {
			a.reaches = map[types.NamespacedName]*reach{}
		}
		r = &reach{}
		a.reaches[key] = r
	}
	if address != "" && now.Sub(r.tried) >= reachInterval {
		r.tried = now
		a.Threads.Go(func() { a.tryReach(key, r, address) })
	}
	s.CQLReached = r.it
}

func (a *Agents) tryReach(key types.NamespacedName, r *reach, address string) {
	ctx, cancel := a.Threads.WithTimeout(context.Background(), askPatience)
	defer cancel()
	reached := a.Reach(ctx, address)
	a.mutex.Lock()
	changed := a.reaches[key] == r && (r.it == nil || *r.it != reached)
	r.it = &reached
	a.mutex.Unlock()
	if changed {
		a.Wake(key)
	}
}
