package scene

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"helenus.io/helenus/dev/demo/cqlclient"
)

// Stream writes rows at QUORUM through every node, all the while something happens to the ring. It remembers what was acknowledged.
type Stream struct {
	ring *Ring
	stop context.CancelFunc
	all  sync.WaitGroup
	// name makes the rows of one stream others than those of every other.
	name string

	mutex   sync.Mutex
	through map[string]*tally
}

// tally is what became of the writes through one node.
type tally struct {
	acknowledged []string
	refused      int
	// first is closed with the first that is acknowledged.
	first chan struct{}
}

const (
	// streamPace is the time between two writes through one node: a client that is always there and loads nothing.
	streamPace = 100 * time.Millisecond
	// streamPause is the time after a write that was refused: a client that backs off.
	streamPause = time.Second
	// streamTimeout bounds one write, so that a node which has gone does not hold the client.
	streamTimeout = 5 * time.Second
)

// Write starts a stream, and returns when it has a write acknowledged through every node.
func (r *Ring) Write(ctx context.Context) (*Stream, error) {
	writing, stop := context.WithCancel(ctx)
	s := &Stream{ring: r, stop: stop, name: time.Now().UTC().Format(time.RFC3339Nano), through: map[string]*tally{}}
	for _, node := range r.NodeNames(ctx) {
		s.through[node] = &tally{first: make(chan struct{})}
	}
	for node, t := range s.through {
		s.all.Go(func() { s.write(writing, node, t) })
	}
	bound := time.After(r.bound(reaction))
	for node, t := range s.through {
		select {
		case <-t.first:
		case <-bound:
			s.stop()
			s.all.Wait()
			return nil, fmt.Errorf("write through node %s: nothing is acknowledged within %s", node, r.bound(reaction))
		}
	}
	return s, nil
}

func (s *Stream) write(ctx context.Context, node string, t *tally) {
	var session *cqlclient.Session
	leave := func() {
		if session != nil {
			session.Close()
			session = nil
		}
	}
	defer leave()
	for i := 0; ctx.Err() == nil; i++ {
		id, pace := fmt.Sprintf("%s/%s/%d", s.name, node, i), streamPace
		err := func() (err error) {
			bounded, done := context.WithTimeout(ctx, streamTimeout)
			defer done()
			if session == nil {
				if session, err = cqlclient.Connect(bounded, s.ring.Kubernetes, s.ring.Namespace, node); err != nil {
					return err
				}
			}
			return session.Query("INSERT INTO "+Keyspace+".stream (id) VALUES (?)", id).Consistency(gocql.Quorum).ExecContext(bounded)
		}()
		if err != nil {
			leave() // the pod may be another one now
			pace = streamPause
		}
		s.note(t, id, err, ctx.Err() != nil)
		select {
		case <-time.After(pace):
		case <-ctx.Done():
		}
	}
}

// note keeps what became of a write. One that the end of the stream interrupted is neither.
func (s *Stream) note(t *tally, id string, err error, over bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	switch {
	case err == nil:
		if t.acknowledged = append(t.acknowledged, id); len(t.acknowledged) == 1 {
			close(t.first)
		}
	case !over:
		t.refused++
	}
}

// Served is the share of writes that were acknowledged through the nodes of which nothing was taken away, from 0 to 1. Call it after Stop.
func (s *Stream) Served(taken ...string) float64 {
	acknowledged, all := 0, 0
	for node, t := range s.through {
		if !slices.Contains(taken, node) {
			acknowledged += len(t.acknowledged)
			all += len(t.acknowledged) + t.refused
		}
	}
	return float64(acknowledged) / float64(max(all, 1))
}

// Stop ends the stream and reads at ALL that everything is there which was acknowledged. It says how much that was, and how much was refused.
func (s *Stream) Stop(ctx context.Context) (string, error) {
	s.stop()
	s.all.Wait()
	nodes := slices.Sorted(maps.Keys(s.through))
	there := map[string]bool{}
	err := s.ring.through(ctx, nodes[0], func(session *cqlclient.Session) error {
		return s.ring.poll(ctx, reaction, "the stream can be read at ALL", func(ctx context.Context) error {
			iter := session.Query("SELECT id FROM " + Keyspace + ".stream").Consistency(gocql.All).IterContext(ctx)
			var id string
			for iter.Scan(&id) {
				there[id] = true
			}
			return iter.Close()
		})
	})
	if err != nil {
		return "", err
	}
	var said, lost []string
	for _, node := range nodes {
		t := s.through[node]
		said = append(said, fmt.Sprintf("%d acknowledged and %d refused through %s", len(t.acknowledged), t.refused, node))
		for _, id := range t.acknowledged {
			if !there[id] {
				lost = append(lost, id)
			}
		}
	}
	if len(lost) > 0 {
		return "", fmt.Errorf("%d acknowledged writes are lost, the first is %s (%s)", len(lost), lost[0], strings.Join(said, ", "))
	}
	return "writes of a client all the while: " + strings.Join(said, ", "), nil
}
