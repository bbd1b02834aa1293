package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"helenus.io/helenus/api/v1alpha1"
)

// figures are what was measured. A time of 0 was not.
type figures struct {
	command string
	host    string
	version string
	// kubernetes is the release of the API server.
	kubernetes string
	at         time.Time
	// loadBefore is how many processes wanted a core in the minute before.
	loadBefore float64

	// one is a single node.
	one                             time.Duration
	formed, bootstrapped, sameFlags map[int]time.Duration
	memory                          []memory
	idle                            *idle
	rollOuts                        []rollOut
	operations                      []operation
	protection                      *protection
	scraped                         []scraped
	backedUp                        *backedUp
	alone                           *backedUp
}

// memory is the resident memory of the containers of a kind, in bytes.
type memory struct {
	what     string
	resident []uint64
}

// idle is what was written while nothing happened.
type idle struct {
	window time.Duration
	nodes  int
	writes int
	detail string
}

func newFigures(ctx context.Context, b *bench, sample *v1alpha1.CassandraCluster) (*figures, error) {
	server, err := b.cluster.Core.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ask the API server for its version: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return &figures{
		command: b.shown, host: host(), version: sample.Spec.Version, kubernetes: server.GitVersion,
		at: time.Now().UTC(), loadBefore: load(),
		formed: map[int]time.Duration{}, bootstrapped: map[int]time.Duration{}, sameFlags: map[int]time.Duration{},
	}, nil
}

// host describes what this runs on.
func host() string {
	parts := []string{fmt.Sprintf("%d cores", runtime.NumCPU())}
	if kb := firstNumber("/proc/meminfo"); kb > 0 {
		parts = append(parts, fmt.Sprintf("%.0f GiB", kb/(1<<20)))
	}
	if kernel, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		parts = append(parts, "Linux "+strings.TrimSpace(string(kernel)))
	}
	return strings.Join(append(parts, runtime.GOARCH), ", ")
}

// load is the average of the last minute; 0 where it is not known.
func load() float64 { return firstNumber("/proc/loadavg") }

// firstNumber is the first number in a file; 0 if there is none.
func firstNumber(file string) float64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for _, field := range strings.Fields(string(text)) {
		if n, err := strconv.ParseFloat(field, 64); err == nil {
			return n
		}
	}
	return 0
}

// markdown prints what was measured, and nothing else.
func (f *figures) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured by `%s` on %s, with Cassandra %s on Kubernetes %s; the host: %s; load before: %.1f.\n",
		f.command, f.at.Format("2 January 2006"), f.version, f.kubernetes, f.host, f.loadBefore)
	if cores := float64(runtime.NumCPU()); f.loadBefore > cores/2 {
		fmt.Fprintf(&b, "\n**The host was busy with other things: these figures say little.**\n")
	}
	f.rings(&b)
	f.memories(&b)
	f.writes(&b)
	f.restarts(&b)
	f.done(&b)
	f.protected(&b)
	f.watched(&b)
	f.backups(&b)
	return b.String()
}

func (f *figures) rings(b *strings.Builder) {
	var sizes []int
	for _, times := range []map[int]time.Duration{f.formed, f.bootstrapped, f.sameFlags} {
		for size := range times {
			sizes = append(sizes, size)
		}
	}
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	if f.one == 0 && len(sizes) == 0 {
		return
	}
	b.WriteString("\n| from nothing to all nodes serving CQL | formed by Helenus | against one node | one by one, " +
		"bootstrap | factor | one by one, same flags | factor |\n")
	b.WriteString("|---|---:|---:|---:|---:|---:|---:|\n")
	if f.one > 0 {
		fmt.Fprintf(b, "| 1 node | %s | | | | | |\n", seconds(f.one))
	}
	for _, size := range sizes {
		formed := f.formed[size]
		fmt.Fprintf(b, "| %d nodes | %s | %s | %s | %s | %s | %s |\n", size, seconds(formed), ratio(formed, f.one),
			seconds(f.bootstrapped[size]), ratio(f.bootstrapped[size], formed), seconds(f.sameFlags[size]),
			ratio(f.sameFlags[size], formed))
	}
}

func seconds(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// ratio of two times; empty if one was not measured.
func ratio(a, b time.Duration) string {
	if a == 0 || b == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f ×", a.Seconds()/b.Seconds())
}

func (f *figures) memories(b *strings.Builder) {
	if len(f.memory) == 0 {
		return
	}
	b.WriteString("\n| resident memory | containers | smallest | largest |\n|---|---:|---:|---:|\n")
	for _, m := range f.memory {
		fmt.Fprintf(b, "| %s | %d | %s | %s |\n", m.what, len(m.resident), mebibytes(slices.Min(m.resident)),
			mebibytes(slices.Max(m.resident)))
	}
}

func mebibytes(bytes uint64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

func (f *figures) writes(b *strings.Builder) {
	if f.idle == nil {
		return
	}
	fmt.Fprintf(b, "\nWrites to the API server by the operator and the agents of %d nodes in %s in which nothing "+
		"happened, without leases: **%d**\n",
		f.idle.nodes, f.idle.window, f.idle.writes)
	if f.idle.detail != "" {
		fmt.Fprintf(b, "\n```\n%s```\n", f.idle.detail)
	}
}
