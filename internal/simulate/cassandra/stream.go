package cassandra

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"helenus.io/helenus/internal/core/ring"
)

// stream is what one node sends another in one plan.
type stream struct {
	from, to *Process
	bytes    int64
	began    time.Time
	takes    time.Duration
	broken   bool
}

// piece is a range of a keyspace that is sent from one node to another.
type piece struct {
	keyspace string
	of       ring.Range
	from, to *Process
}

// Streams says that it takes part in a stream.
func (p *Process) Streams() bool { return len(p.streams) > 0 }

// FailStreams makes the next so many streams fail.
func (n *Network) FailStreams(count int) { n.failStreams = count }

// transfer sends pieces, each as its source has them at the beginning, and returns when all have
// arrived. It fails if a node at either end is lost meanwhile.
func (p *Process) transfer(pieces []piece) error {
	type row struct {
		to            *Process
		keyspace, key string
		cell          cell
	}
	var rows []row
	var plans []*stream
	for _, x := range pieces {
		s := planOf(&plans, x.from, x.to)
		for _, key := range x.from.disk.keys(x.keyspace) {
			if within(x.of, tokenOf(key)) {
				const size = 200
				rows = append(rows, row{x.to, x.keyspace, key, x.from.disk.data[x.keyspace][key]})
				s.bytes += size
			}
		}
	}
	if len(plans) == 0 {
		return nil
	}
	takes := p.net.options.StreamTime + time.Duration(len(rows))*p.net.options.StreamPerKey
	fails := p.net.failStreams > 0
	if fails {
		p.net.failStreams--
		takes /= 2
	}
	// Releases of different lines do not stream to each other.
	fails = fails || slices.ContainsFunc(plans,
		func(s *stream) bool { return s.from.majorRelease() != s.to.majorRelease() })
	for _, s := range plans {
		s.began, s.takes = p.line.Now(), takes
		s.from.streams = append(s.from.streams, s)
		s.to.streams = append(s.to.streams, s)
	}
	defer func() {
		for _, s := range plans {
			for _, end := range []*Process{s.from, s.to} {
				end.streams = slices.DeleteFunc(end.streams, func(x *stream) bool { return x == s })
			}
		}
	}()
	p.sleep(takes)
	for _, s := range plans {
		if fails || s.broken || !s.from.reaches(s.to) {
			return fmt.Errorf("stream from /%s to /%s failed", p.net.name(s.from.address), p.net.name(s.to.address))
		}
	}
	for _, r := range rows {
		if r.cell.deleted && !p.line.Now().Before(r.cell.until) {
			continue // its source has forgotten it meanwhile
		}
		r.to.disk.putStreamed(r.keyspace, r.key, r.cell)
	}
	for _, s := range plans {
		if s.to.diesOfFullDisk() {
			return fmt.Errorf("stream from /%s to /%s failed: no room", p.net.name(s.from.address),
				p.net.name(s.to.address))
		}
		s.to.loadChanges()
	}
	return nil
}

func planOf(plans *[]*stream, from, to *Process) *stream {
	for _, s := range *plans {
		if s.from == from && s.to == to {
			return s
		}
	}
	s := &stream{from: from, to: to}
	*plans = append(*plans, s)
	return s
}

// abortStreams breaks those that this process takes part in.
func (p *Process) abortStreams() {
	for _, s := range p.streams {
		s.broken = true
	}
}

// appendStreams is CurrentStreams: one entry for each plan, or the part of each that the path
// selects.
func (p *Process) appendStreams(out []byte, path string) ([]byte, *javaError) {
	field := strings.TrimPrefix(path, "*/")
	out = append(out, '[')
	for i, s := range p.streams {
		if i > 0 {
			out = append(out, ',')
		}
		done := int64(0)
		if s.takes > 0 {
			done = s.bytes * int64(p.line.Now().Sub(s.began)/time.Millisecond) / max(int64(s.takes/time.Millisecond), 1)
		}
		values := map[string]int64{"currentRxBytes": 0, "totalRxBytes": 0, "currentTxBytes": done,
			"totalTxBytes": s.bytes}
		if s.to == p {
			values = map[string]int64{"currentRxBytes": done, "totalRxBytes": s.bytes, "currentTxBytes": 0,
				"totalTxBytes": 0}
		}
		if path == "" {
			out = append(out, fmt.Sprintf(`{"currentRxBytes":%d,"totalRxBytes":%d,"currentTxBytes":%d,"totalTxBytes":%d}`,
				values["currentRxBytes"], values["totalRxBytes"], values["currentTxBytes"], values["totalTxBytes"])...)
			continue
		}
		value, known := values[field]
		if !known {
			return out, exception(illegalArgument, "No key '%s' known", field)
		}
		out = strconv.AppendInt(out, value, 10)
	}
	return append(out, ']'), nil
}

// liveProcess is the node at an address, if this one sees it alive and it answers.
func (p *Process) liveProcess(a netip.Addr) *Process {
	if other := p.net.byAddress[a]; other != nil && p.isAlive(a) && p.reaches(other) {
		return other
	}
	return nil
}

// unionEnds are the ends of the ranges of two rings together.
func unionEnds(a, b *circle) []ring.Token {
	ends := append(a.Tokens(), b.Tokens()...)
	slices.Sort(ends)
	return slices.Compact(ends)
}

// forEachRange calls f for every range of two rings together, with the replicas of a keyspace in
// both.
func forEachRange(before, after *circle, replication ring.Replication, f func(of ring.Range, was, is []netip.Addr)) {
	ends := unionEnds(before, after)
	for i, end := range ends {
		f(ring.Range{Start: ends[(i+len(ends)-1)%len(ends)], End: end}, before.endpoints(replication, end),
			after.endpoints(replication, end))
	}
}
