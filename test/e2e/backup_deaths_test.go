//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"helenus.io/helenus/api/v1alpha1"
)

// troubled is an object store that turns some requests away, answers others late, and breaks off in
// the middle of others, while it is asked to.
type troubled struct {
	http.Handler
	on       atomic.Bool
	requests atomic.Int64
	// refused, late and broken are how many were.
	refused, late, broken atomic.Int64
}

func (s *troubled) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := s.requests.Add(1)
	switch {
	case !s.on.Load():
	case n%7 == 0:
		s.refused.Add(1)
		status, code := http.StatusServiceUnavailable, "SlowDown"
		if n%2 == 0 {
			status, code = http.StatusInternalServerError, "InternalError"
		}
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>try later</Message></Error>", code)
		return
	case n%11 == 0:
		s.late.Add(1)
		select {
		case <-time.After(3 * time.Second):
		case <-r.Context().Done():
		}
	case n%13 == 0 && r.Method == http.MethodPut:
		s.broken.Add(1)
		_, _ = io.CopyN(io.Discard, r.Body, r.ContentLength/2)
		panic(http.ErrAbortHandler)
	case n%5 == 0 && r.Method == http.MethodGet:
		s.broken.Add(1)
		half := &halved{ResponseWriter: w}
		s.Handler.ServeHTTP(half, r)
		half.breakOff()
	}
	s.Handler.ServeHTTP(w, r)
}

// halved is an answer of which one half is sent.
type halved struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (h *halved) WriteHeader(status int)            { h.status = status }
func (h *halved) Write(content []byte) (int, error) { return h.body.Write(content) }

func (h *halved) breakOff() {
	if h.status != 0 {
		h.ResponseWriter.WriteHeader(h.status)
	}
	_, _ = h.ResponseWriter.Write(h.body.Bytes()[:h.body.Len()/2])
	panic(http.ErrAbortHandler)
}

// TestBackupsAndDeaths: a ring is backed up again and again by a store that turns requests away,
// answers late and breaks off, while operators, agents, JVMs and a host are lost at random moments;
// and a table comes back from the last backup in the same way. Every backup has all files of all
// nodes.
func TestBackupsAndDeaths(t *testing.T) {
	onlyInFull(t)
	ring, victim := onHosts(t, "e2e-backup-deaths")
	before, names := identities(t, ring), ring.NodeNames(t.Context())
	trouble := &troubled{}
	in := bucket(t, ring, func(service http.Handler) http.Handler {
		trouble.Handler = service
		return trouble
	})
	seed := uint64(time.Now().UnixNano()) //nolint:gosec // it is a seed
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	leader := ""
	deaths := []struct {
		of string
		do func() error
	}{
		{"the agent of each node", func() (err error) {
			for _, name := range names {
				err = errors.Join(err, ring.SignalAgent(podOf(t, ring, name).UID, syscall.SIGKILL))
			}
			return err
		}},
		{"the operator", func() (err error) {
			leader, err = ring.KillLeader(t.Context(), leader, 0)
			return err
		}},
		{"a JVM", func() error { return ring.KillJVM(t.Context(), names[random.IntN(len(names))]) }},
		{"a host", func() error {
			ring.Invariants.ExpectRestart(victim.Name)
			if err := ring.LoseHost(t.Context(), victim.Spec.NodeName, false); err != nil {
				return err
			}
			rest(t, time.Minute)
			return ring.ReturnHost(t.Context(), victim.Spec.NodeName)
		}},
	}
	// beside does something while there is death at a random moment.
	beside := func(i int, do func() error) error {
		ended := make(chan error, 1)
		began, after := time.Now(), 2*time.Second+time.Duration(random.Int64N(int64(18*time.Second)))
		go func() { ended <- do() }()
		rest(t, after)
		death := deaths[i%len(deaths)]
		wrong := death.do()
		err := errors.Join(wrong, <-ended)
		t.Logf("%6.1fs  %s died after %.1f s", time.Since(began).Seconds(), death.of, after.Seconds())
		return errors.Join(err, ring.Serving(t.Context()))
	}
	var backups []*v1alpha1.CassandraBackup
	while(t, ring, gapsAreShort, "the ring is backed up, restored, and all that this needs dies", func() error {
		trouble.on.Store(true)
		defer trouble.on.Store(false)
		for i := range 2 * len(deaths) {
			if err := beside(i, func() error {
				b, err := ring.BackUp(t.Context(), fmt.Sprintf("backup-%d", i), "main")
				backups = append(backups, b)
				return err
			}); err != nil {
				return err
			}
		}
		for i := range len(deaths) - 1 { // a node that is down lets a restore wait, and fail
			if err := beside(i, func() error {
				return ring.Restore(t.Context(), fmt.Sprintf("restore-%d", i), "main", backups[len(backups)-1].Status.ID,
					v1alpha1.RestoreMerge)
			}); err != nil {
				return err
			}
		}
		return nil
	})
	t.Logf("of %d requests %d were refused, %d late, %d broken off", trouble.requests.Load(), trouble.refused.Load(),
		trouble.late.Load(), trouble.broken.Load())
	for _, b := range backups {
		if err := whole(t, in, b, len(names)); err != nil {
			t.Errorf("backup %s: %v", b.Name, err)
		}
	}
	for _, node := range names {
		if err := ring.ReadThrough(t.Context(), node, gocql.One); err != nil {
			t.Error(err)
		}
	}
	wantSameMembers(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}
