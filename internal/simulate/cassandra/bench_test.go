package cassandra

import (
	"context"
	"fmt"
	"testing"
	"time"

	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/jolokia"
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
				fresh := newLabLine(l)
				processes := make([]*Process, nodes)
				for i := range files {
					o := files[i]
					o.Disk = NewDisk()
					processes[i] = fresh.net.Start(o)
				}
				fresh.awaitFormed(processes...)
			}
		})
	}
}

// newLabLine is a lab in another timeline.
func newLabLine(l *lab) *lab {
	fresh := newLab(l.t, 1)
	return fresh
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
	client, err := jolokia.New(jolokia.Config{URL: "http://127.0.0.1:7777/jolokia/", User: "helenus", Password: jolokiaPassword, Transport: processes[0]})
	if err != nil {
		b.Fatal(err)
	}
	node := cassandra.NewNode(client)
	b.Run("with the client", func(b *testing.B) {
		for b.Loop() {
			if _, err := node.View(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("the node alone", func(b *testing.B) {
		var body *bulk
		for _, known := range l.net.bulks {
			body = known
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
