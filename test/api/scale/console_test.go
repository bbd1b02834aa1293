package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/dev/localkube/audit"
	"helenus.io/helenus/dev/localkube/state"
	"helenus.io/helenus/internal/inspectapi"
	"helenus.io/helenus/test/api/live"
)

// TestConsolesWriteNothing: while nothing happens to a cluster that ten consoles show, the operator
// asks again whether they may, and writes nothing. It tells how long after a change they show it.
func TestConsolesWriteNothing(t *testing.T) {
	o := options{operator: build(t), definitions: "../../../config/crd", clusters: 1, perRack: 3}
	if _, err := live.With(t.Context(), "scale", false, t.Output(), func(config *rest.Config, kubeconfig string) (int, error) {
		return 0, watchAtRest(t, newBench(config, kubeconfig, t.TempDir(), o, t.Logf))
	}); err != nil {
		t.Error(err)
	}
}

func watchAtRest(t *testing.T, b *bench) error {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := free.Addr().String()
	if err := errors.Join(free.Close(), b.prepare(ctx)); err != nil {
		return err
	}
	if b.operator, err = startOperator(ctx, b.options.operator, b.kubeconfig, b.folder, "--inspect-address", address); err != nil {
		return err
	}
	defer b.operator.stop()
	if err := b.fleet.Create(ctx, clusterOf(0, b.perRack)); err != nil {
		return err
	}
	if err := b.untilAllServe(ctx); err != nil {
		return err
	}
	consoles := make([]*bufio.Scanner, 10)
	for i := range consoles {
		stream, err := b.watch(ctx, address)
		if err != nil {
			return fmt.Errorf("%w\nthe operator's last words:\n%s", err, b.operator.words())
		}
		defer func() { _ = stream.Close() }()
		consoles[i] = bufio.NewScanner(stream)
		consoles[i].Buffer(nil, 1<<20)
	}
	if err := rests(consoles[0], 4); err != nil {
		return err
	}
	since := time.Now()
	ended := make(chan error, len(consoles))
	for _, c := range consoles {
		go func() { ended <- rests(c, 5) }() // of the first a minute, in which each is asked about again
	}
	for range consoles {
		err = errors.Join(err, <-ended)
	}
	if err != nil {
		return err // of a stream that has ended
	}
	took := time.Since(since).Round(time.Second)
	reviews, others, err := b.writes(since)
	if err != nil || len(others) > 0 || reviews < len(consoles) {
		t.Errorf("in %s in which nothing happened: %d reviews, and %v (%v)", took, reviews, others, err)
	}
	t.Logf("%d reviews in %s", reviews, took)
	if _, all, err := b.writes(time.Time{}); err != nil || len(all) == 0 {
		t.Errorf("the audit log has no write at all (%v)", err)
	}
	var changes []time.Duration
	for i := range 20 {
		change, err := b.pause(ctx, consoles[0], i%2 == 0)
		if err != nil {
			return err
		}
		changes = append(changes, change)
	}
	t.Logf("a change was sent after %s, at most %s", percentile(changes, 50), percentile(changes, 100))
	return nil
}

// pause a cluster or end that, and await the view that says so: most of these changes come when one
// before has just been sent.
func (b *bench) pause(ctx context.Context, stream *bufio.Scanner, paused bool) (time.Duration, error) {
	begun := time.Now()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"paused":%t}}`, paused))
	if err := b.fleet.Patch(ctx, clusterOf(0, b.perRack), patch); err != nil {
		return 0, err
	}
	for stream.Scan() {
		if data, is := strings.CutPrefix(stream.Text(), "data: {"); is && strings.Contains(data, `"paused":true`) == paused {
			return time.Since(begun), nil
		}
	}
	return 0, errors.Join(errors.New("the stream has ended"), stream.Err())
}

// writes counts reviews of rights since, and has all other writes but those of the API server's
// own.
func (b *bench) writes(since time.Time) (reviews int, others []audit.Count, err error) {
	counts, err := audit.SummariseFile(state.Dir(filepath.Dir(b.kubeconfig)).Audit(),
		audit.Filter{Since: since, WritesOnly: true, WithoutLeases: true})
	for _, c := range counts {
		switch {
		case strings.HasPrefix(c.Resource, "subjectaccessreviews"):
			reviews += c.Requests
		case !strings.HasPrefix(c.User, "system:apiserver"):
			others = append(others, c)
		}
	}
	return reviews, others, err
}

// watch opens the stream of a page.
func (b *bench) watch(ctx context.Context, address string) (io.ReadCloser, error) {
	known := rest.CopyConfig(b.config)
	known.Insecure, known.CAData, known.CAFile = true, nil, "" // the operator has a certificate of its own
	transport, err := rest.TransportFor(known)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"https://"+address+inspectapi.Path(namespace, clusterName(0))+"/watch", http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := transport.RoundTrip(r)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.Join(errors.New(answer.Status), answer.Body.Close())
	}
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// rests reads a stream until so many heart beats came after each other, without another view.
func rests(stream *bufio.Scanner, beats int) error {
	for n := 0; n < beats; {
		if !stream.Scan() {
			return errors.Join(errors.New("the stream has ended"), stream.Err())
		}
		switch stream.Text() {
		case "event: view":
			n = 0
		case "event: beat":
			n++
		}
	}
	return nil
}
