package scene

import (
	"context"
	"errors"
	"fmt"
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

	mutex        sync.Mutex
	acknowledged []string
	refused      int
}

const (
	// streamPace is the time between two writes through one node: a client that is always there and loads nothing.
	streamPace = 100 * time.Millisecond
	// streamTimeout bounds one write, so that a node which has gone does not hold the client.
	streamTimeout = 5 * time.Second
)

// Write starts a stream.
func (r *Ring) Write(ctx context.Context) *Stream {
	ctx, stop := context.WithCancel(ctx)
	s := &Stream{ring: r, stop: stop}
	for _, node := range r.NodeNames(ctx) {
		s.all.Go(func() { s.write(ctx, node) })
	}
	return s
}

func (s *Stream) write(ctx context.Context, node string) {
	pace := time.NewTicker(streamPace)
	defer pace.Stop()
	var session *cqlclient.Session
	leave := func() {
		if session != nil {
			session.Close()
			session = nil
		}
	}
	defer leave()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-pace.C:
		}
		id := fmt.Sprintf("%s/%d", node, i)
		err := func() error {
			bounded, done := context.WithTimeout(ctx, streamTimeout)
			defer done()
			if session == nil {
				var err error
				if session, err = cqlclient.Connect(bounded, s.ring.Kubernetes, s.ring.Namespace, node); err != nil {
					return err
				}
			}
			return session.Query("INSERT INTO "+keyspace+".stream (id) VALUES (?)", id).Consistency(gocql.Quorum).ExecContext(bounded)
		}()
		s.mutex.Lock()
		if err == nil {
			s.acknowledged = append(s.acknowledged, id)
		} else if ctx.Err() == nil {
			s.refused++
		}
		s.mutex.Unlock()
		if err != nil {
			leave() // the pod may be another one now
		}
	}
}

// Stop ends the stream and reads at ALL that everything is there which was acknowledged. It says how much that was, and how much was refused.
func (s *Stream) Stop(ctx context.Context) (string, error) {
	s.stop()
	s.all.Wait()
	nodes := s.ring.NodeNames(ctx)
	if len(s.acknowledged) == 0 || len(nodes) == 0 {
		return "", errors.New("the stream of writes had not one acknowledged")
	}
	there := map[string]bool{}
	err := s.ring.through(ctx, nodes[0], func(session *cqlclient.Session) error {
		return s.ring.poll(ctx, reaction, "the stream can be read at ALL", func(ctx context.Context) error {
			iter := session.Query("SELECT id FROM " + keyspace + ".stream").Consistency(gocql.All).IterContext(ctx)
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
	var lost []string
	for _, id := range s.acknowledged {
		if !there[id] {
			lost = append(lost, id)
		}
	}
	if len(lost) > 0 {
		return "", fmt.Errorf("%d of %d acknowledged writes are lost, the first is %s", len(lost), len(s.acknowledged), lost[0])
	}
	return fmt.Sprintf("%d writes were acknowledged and are there, %d were refused", len(s.acknowledged), s.refused), nil
}
