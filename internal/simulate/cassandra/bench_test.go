package cassandra

import (
	"context"
	"fmt"
	"testing"
	"time"

	"helenus.io/helenus/test/nodeview"

	"helenus.io/helenus/internal/jolokia"
	"helenus.io/helenus/internal/simulate/timeline"
)

func BenchmarkFormation(b *testing.B) {
	for _, nodes := range []int{3, 9} {
		b.Run(fmt.Sprintf("%d nodes", nodes), func(b *testing.B) {
			l := newLab(b, 1)
			if nodes > 2 {
				l.seeds = append(l.seeds, address(2))
			}
			all := make([]*node, nodes)
			files := make([]StartOptions, nodes)
			for i := range all {
				all[i] = member(i + 1)
				p := l.start(all[i], l.fresh(i+1, nodes)...)
				files[i] = p.options
				p.Kill()
			}
			for b.Loop() {
				fresh := &lab{t: b, line: timeline.New(begin, 1), tokens: l.tokens, exits: l.exits}
				fresh.net = New(fresh.line, Options{})
				processes := make([]*Process, nodes)
				for i := range files {
					o := files[i]
					o.Disk, o.Exited = NewDisk(), nil
					processes[i] = fresh.net.Start(o)
				}
				fresh.awaitFormed(processes...)
			}
		})
	}
}

func BenchmarkIdleMinute(b *testing.B) {
	l := newLab(b, 1)
	l.form(9)
	l.line.RunFor(5 * time.Minute)
	events := l.line.Events()
	minutes := 0
	for b.Loop() {
		l.line.RunFor(time.Minute)
		minutes++
	}
	b.ReportMetric(float64(l.line.Events()-events)/float64(minutes), "events/op")
}

func BenchmarkView(b *testing.B) {
	l := newLab(b, 1)
	_, processes := l.form(9)
	client, err := jolokia.New(jolokia.Config{URL: "http://127.0.0.1:7777/jolokia/", User: "helenus",
		Password: jolokiaPassword, Transport: processes[0]})
	if err != nil {
		b.Fatal(err)
	}
	node := nodeview.New(client)
	b.Run("with the client", func(b *testing.B) {
		for b.Loop() {
			if _, err := node.View(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("the agent's look", func(b *testing.B) {
		jvm := l.agentJVM(processes[0])
		for b.Loop() {
			if _, err := jvm.Look(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("a glance", func(b *testing.B) {
		before := processes[0].Glance()
		for b.Loop() {
			if processes[0].Glance() != before {
				b.Fatal("it changed")
			}
		}
	})
	b.Run("the node alone", func(b *testing.B) {
		var body *bulk
		const requests = 6 // of a view
		for _, known := range l.net.bulks {
			if len(known.requests) == requests {
				body = known
			}
		}
		out := make([]byte, 0, 16<<10)
		for b.Loop() {
			out = out[:0]
			for i := range body.requests {
				out, _, _ = processes[0].element(context.Background(), out, &body.requests[i])
			}
		}
	})
}
