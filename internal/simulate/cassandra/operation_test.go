package cassandra

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/test/nodeview"

	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/jolokia"
)

func TestAnOperationGoesOnWithoutItsClient(t *testing.T) {
	l := newLab(t, 1)
	_, p := l.form(1)
	client, err := jolokia.New(jolokia.Config{URL: "http://127.0.0.1:7777/jolokia/", User: "helenus",
		Password: jolokiaPassword, Transport: p[0]})
	if err != nil {
		t.Fatal(err)
	}
	task := l.line.Go("client", func() {
		if err := nodeview.New(client).Drain(context.Background()); err != nil {
			t.Errorf("the killed client continues: %v", err)
		}
	}, nil)
	l.line.RunFor(time.Second)
	task.Kill()
	if p[0].Mode() != modeDraining {
		t.Fatalf("mode %s", p[0].Mode())
	}
	l.awaitMode(p[0], modeDrained)
}

func TestADeathCutsTheConnectionOfAnOperation(t *testing.T) {
	l := newLab(t, 1)
	_, p := l.form(1)
	result := l.exec(p[0], "drain()")
	l.line.RunFor(time.Second)
	p[0].Kill()
	l.await("the answer", time.Second, func() bool {
		return !errors.Is(*result, io.EOF) || strings.Contains((*result).Error(), "JVM")
	})
	if !errors.Is(*result, jolokia.ErrUnreachable) {
		t.Errorf("error %v", *result)
	}
	again := l.exec(p[0], "drain()")
	l.line.RunFor(time.Second)
	if !errors.Is(*again, jolokia.ErrUnreachable) {
		t.Errorf("after the death: error %v", *again)
	}
}

// TestOutsideOfATaskNothingTakesTime says so instead of waiting for ever.
func TestOutsideOfATaskNothingTakesTime(t *testing.T) {
	l := newLab(t, 1)
	_, p := l.form(1)
	client, err := jolokia.New(jolokia.Config{URL: "http://127.0.0.1:7777/jolokia/", User: "helenus",
		Password: jolokiaPassword, Transport: p[0]})
	if err != nil {
		t.Fatal(err)
	}
	if err := nodeview.New(client).Drain(context.Background()); err == nil ||
		!strings.Contains(err.Error(), "call it in a task") {
		t.Errorf("error %v", err)
	}
}

func TestStreamsShowThatDataFlows(t *testing.T) {
	l, _, p := filled(t, 1, 3)
	_, fourth := l.join(4)
	l.await("the stream", 2*time.Minute, func() bool { return len(fourth.streams) > 0 })
	l.line.RunFor(time.Second)
	streams, err := nodeview.New(l.client(fourth)).Streams(context.Background())
	if err != nil || streams.Plans == 0 || streams.ToReceive == 0 || streams.Received == 0 ||
		streams.ToSend != 0 {
		t.Errorf("streams of the new node are %+v, error %v", streams, err)
	}
	if err := nodeview.New(l.client(p[0])).Cleanup(context.Background(), 1, "shop"); err != nil {
		t.Errorf("cleanup of a node that receives nothing: %v", err)
	}
	if err := nodeview.New(l.client(fourth)).Cleanup(context.Background(), 1, "shop"); !errors.Is(err,
		jolokia.ErrException) {
		t.Errorf("cleanup of a joining node: error %v", err)
	}
	l.awaitFormed(append(p, fourth)...)
	if streams, err := nodeview.New(l.client(fourth)).Streams(context.Background()); err != nil ||
		streams != (facts.Transfer{}) {
		t.Errorf("afterwards streams are %+v, error %v", streams, err)
	}
}

func TestAFlushIsSafeFromTheHostsCrash(t *testing.T) {
	l, nodes, p := filled(t, 1, 3)
	l.fill(p[0], "shop", 100, 110)
	for i, x := range p {
		flushed := l.exec(x, "forceKeyspaceFlush(java.lang.String,[Ljava.lang.String;)", "shop", []string{})
		l.await("the flush", time.Minute, func() bool { return !errors.Is(*flushed, io.EOF) })
		if *flushed != nil {
			t.Error(*flushed)
		}
		x.Kill()
		nodes[i].disk.LoseUnsynced(l.line.Now())
	}
	l.noneLost()
}

// TestACloneOfALivingNodeTakesItsPlace is what a volume restored beside its original does: nobody
// refuses it.
func TestACloneOfALivingNodeTakesItsPlace(t *testing.T) {
	l, nodes, p := filled(t, 1, 3)
	n := member(3)
	n.address, n.disk = address(9), nodes[2].disk.Clone()
	clone := l.start(n)
	l.await("its service", time.Minute, clone.NativeOpen)
	l.line.RunFor(10 * time.Second)
	if p[0].metadata.byHost[clone.HostID()] != address(9) || p[0].metadata.isMember(address(3)) {
		t.Errorf("members are %v", l.view(p[0]).HostIDs)
	}
	if p[2].Ended() || p[2].Mode() != modeNormal || !p[2].NativeOpen() {
		t.Error("the original has given up")
	}
	if err := p[0].Write("shop", "after", "x", ring.All); err != nil {
		t.Fatal(err)
	}
	if nodes[2].disk.data["shop"]["after"].value != "" || n.disk.data["shop"]["after"].value != "x" {
		t.Error("the write went to the original")
	}
}

func TestSlowHostsTakeLonger(t *testing.T) {
	took := func(factor float64) time.Duration {
		l := newLab(t, 1)
		l.net.Slow(address(1), factor)
		p := l.start(member(1), l.fresh(1, 1)...)
		l.await("its service", 5*time.Minute, p.NativeOpen)
		return l.line.Now().Sub(begin)
	}
	if one, three := took(1), took(3); three < 2*one {
		t.Errorf("it took %s and %s", one, three)
	}
}

func TestSeedsAreReadAnewFromTheFile(t *testing.T) {
	l := newLab(t, 1)
	_, p := l.form(3)
	l.seeds = l.seeds[:1]
	p[2].options.Files["cassandra.yaml"] = l.files(member(3))["cassandra.yaml"]
	seeds, err := nodeview.New(l.client(p[2])).ReloadSeeds(context.Background())
	if err != nil || len(seeds) != 1 || seeds[0].Addr() != address(1) {
		t.Errorf("seeds %v, error %v", seeds, err)
	}
	p[2].options.Files["cassandra.yaml"] = []byte("this is no yaml\n")
	if _, err := nodeview.New(l.client(p[2])).ReloadSeeds(context.Background()); !errors.Is(err,
		cassandra.ErrSeedsNotLoaded) {
		t.Errorf("error %v", err)
	}
	if view := l.view(p[2]); !slices.Equal(view.Seeds, seeds) {
		t.Errorf("seeds are %v", view.Seeds)
	}
}
