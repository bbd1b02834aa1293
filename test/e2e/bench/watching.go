package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/test/e2e/scene"
)

// scraped are the metrics of a node with so many tables.
type scraped struct {
	tables, series int
	// took are the times of the pages on the clock, in order of length, and processor is that of
	// the JVM for each page.
	took      []time.Duration
	processor time.Duration
}

const (
	scrapes = 50
	// calm is how long the JVM is left alone, to know what it takes by itself.
	calm = 30 * time.Second
)

// watches measures what the metrics of a node cost, which is a ring by itself: with a hundred
// tables, and with a thousand of which the pages name a hundred. A thousand tables have no room in
// the memory of the sample.
func (b *bench) watches(ctx context.Context, sample *v1alpha1.CassandraCluster, f *figures) error {
	c := shaped(sample, 1)
	c.Spec.Node.JVM.Heap = new(resource.MustParse("1536Mi"))
	c.Spec.Node.Resources.Limits[corev1.ResourceMemory] = resource.MustParse("4Gi")
	_, err := b.form(ctx, c, func(ring *scene.Ring) error {
		if err := ring.Fill(ctx, gocql.One); err != nil {
			return err
		}
		made := 0
		for _, tables := range []int{100, 1000} {
			if err := ring.MakeTables(ctx, made, tables); err != nil {
				return err
			}
			made = tables
			s, err := scrape(ctx, ring, tables)
			if err != nil {
				return err
			}
			b.say("%d tables: %d series, %s at most, %s of the processor", tables, s.series, s.took[len(s.took)-1],
				s.processor)
			f.scraped = append(f.scraped, s)
		}
		return nil
	})
	return err
}

func scrape(ctx context.Context, ring *scene.Ring, tables int) (scraped, error) {
	out := scraped{tables: tables}
	node := ring.NodeNames(ctx)[0]
	if _, _, err := ring.Scrapes(ctx, node, scrapes); err != nil { // what runs often is compiled first
		return out, err
	}
	var used [3]time.Duration
	var page []byte
	for i := range used {
		if i == 1 {
			if err := pass(ctx, calm); err != nil {
				return out, err
			}
		}
		var err error
		if i == 2 {
			if out.took, page, err = ring.Scrapes(ctx, node, scrapes); err != nil {
				return out, err
			}
		}
		if used[i], err = processorTime(ctx, ring, node); err != nil {
			return out, err
		}
	}
	whole := time.Duration(0)
	for _, t := range out.took {
		whole += t
	}
	byItself := time.Duration(float64(used[1]-used[0]) * whole.Seconds() / calm.Seconds())
	out.processor = (used[2] - used[1] - byItself) / scrapes
	slices.Sort(out.took)
	for line := range bytes.Lines(page) {
		if bytes.HasPrefix(line, []byte("cassandra_")) {
			out.series++
		}
	}
	return out, nil
}

// processorTime is what the JVM of a node has used, in hundredths of a second.
func processorTime(ctx context.Context, ring *scene.Ring, node string) (time.Duration, error) {
	out, err := ring.Run(ctx, node, "sh", "-c", "cat /proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(out) {
		_, rest, is := strings.Cut(line, " (java) ")
		if !is {
			continue
		}
		const user, system = 11, 12 // after the name, by proc_pid_stat(5)
		fields, ticks := strings.Fields(rest), 0
		for _, i := range []int{user, system} {
			n, err := strconv.Atoi(fields[i])
			if err != nil {
				return 0, fmt.Errorf("read the processor time of the JVM of %s: %w", node, err)
			}
			ticks += n
		}
		return time.Duration(ticks) * 10 * time.Millisecond, nil
	}
	return 0, fmt.Errorf("there is no JVM in the pod of node %s", node)
}

// watched prints what metrics cost.
func (f *figures) watched(b *strings.Builder) {
	if len(f.scraped) == 0 {
		return
	}
	b.WriteString("\n| tables | series | a page, median | 99 % within | processor time of the JVM |\n" +
		"|---:|---:|---:|---:|---:|\n")
	for _, s := range f.scraped {
		fmt.Fprintf(b, "| %d | %d | %d ms | %d ms | %.1f ms |\n", s.tables, s.series, middle(s.took).Milliseconds(),
			s.took[len(s.took)*99/100].Milliseconds(), float64(s.processor.Microseconds())/1000)
	}
}
