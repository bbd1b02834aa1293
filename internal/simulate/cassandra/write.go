package cassandra

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"helenus.io/helenus/internal/core/ring"
)

// Errors of reads and writes.
var (
	// ErrUnavailable means that the coordinator sees too few replicas alive: nothing was written.
	ErrUnavailable = errors.New("cannot achieve consistency level")
	// ErrTimeout means that too few replicas answered. The write may be there or not.
	ErrTimeout = errors.New("operation timed out")
	// ErrNoCQL means that the node does not serve clients.
	ErrNoCQL = errors.New("native transport is closed")
)

// Written is a write that was acknowledged to a client.
type Written struct {
	Keyspace, Key, Value string
	Level                ring.Consistency
	// Deleted says that it took the row away.
	Deleted bool
	// Cluster and Datacenter of the coordinator.
	Cluster, Datacenter string
	at                  int64
}

// hint is a write that is kept for a node that was down.
type hint struct {
	keyspace, key string
	cell          cell
}

// hintDelay is how soon hints are sent to a node that is back.
const hintDelay = 10 * time.Second

// Write writes a row through this node as coordinator. It is acknowledged only if the error is nil.
func (p *Process) Write(name, key, value string, level ring.Consistency) error {
	k, err := p.clientKeyspace(name)
	if err != nil {
		return err
	}
	return p.mutate(name, k, key, cell{value: value}, level)
}

// Delete takes a row of a table away, as Write writes one. The deletion is kept for the table's
// gc_grace_seconds: after that compactions forget it wherever it is, and hints of it are not sent
// any more (Hint#isLive, 4.1 and 5.0).
func (p *Process) Delete(name, table, key string, level ring.Consistency) error {
	k, err := p.clientKeyspace(name)
	if err != nil {
		return err
	}
	grace, found := k.tables[table]
	if !found {
		return fmt.Errorf("table %s.%s does not exist", name, table)
	}
	return p.mutate(name, k, key, cell{deleted: true, until: p.line.Now().Add(time.Duration(grace) * time.Second)},
		level)
}

// HasLocal says that the node knows a keyspace that has replicas in its datacenter.
func (p *Process) HasLocal(name string) bool {
	k, err := p.clientKeyspace(name)
	return err == nil && factorIn(k.replication, p.settings.datacenter) > 0
}

// Unavailable says that this node sees too few replicas of a row up for a level, which has some
// here.
func (p *Process) Unavailable(name, key string, level ring.Consistency) bool {
	k, err := p.clientKeyspace(name)
	if err != nil || factorIn(k.replication, p.settings.datacenter) == 0 {
		return false
	}
	live := 0
	for _, a := range p.natural(k.replication, tokenOf(key)) {
		if p.counted(level)(a) && p.isAlive(a) {
			live++
		}
	}
	return live < p.blockFor(k.replication, level)
}

// Serves says that a row would be read or written through this node at a level by replicas that are
// NORMAL for so long at least: it sees enough of them up, and as many answer. For some seconds a
// node sees up what no longer runs.
func (p *Process) Serves(name, key string, level ring.Consistency, normalFor time.Duration) bool {
	k, err := p.clientKeyspace(name)
	if err != nil {
		return false
	}
	answer := 0
	for _, a := range p.natural(k.replication, tokenOf(key)) {
		other := p.net.byAddress[a]
		if p.counted(level)(a) && p.isAlive(a) && other != nil && p.reaches(other) && other.NormalFor() >= normalFor {
			answer++
		}
	}
	return answer >= p.blockFor(k.replication, level)
}

// mutate writes or deletes a row.
func (p *Process) mutate(name string, k keyspace, key string, c cell, level ring.Consistency) error {
	n := p.net
	n.written = max(n.written+1, p.line.Now().UnixMicro())
	c.at = n.written
	t := tokenOf(key)
	natural, pending := p.natural(k.replication, t), p.pendingOf(k.replication, t)
	all := append(slices.Clone(natural), pending...)
	counted := p.counted(level)
	required := p.blockFor(k.replication, level)
	live := 0
	for _, a := range all {
		if counted(a) && p.isAlive(a) {
			live++
		}
	}
	for _, a := range pending {
		if counted(a) {
			required++
		}
	}
	if live < required {
		return fmt.Errorf("%w %s: %d replicas required, %d alive", ErrUnavailable, level.CQL(), required, live)
	}
	if c.deleted {
		p.line.At(c.until, "compaction", func() {
			for _, d := range n.disks {
				d.compact(name, key, c)
			}
		})
	}
	acknowledged := 0
	for _, a := range all {
		if p.writeTo(a, name, key, c) {
			if counted(a) {
				acknowledged++
			}
		} else {
			p.keepHint(a, hint{name, key, c})
		}
	}
	if acknowledged < required {
		return fmt.Errorf("%w: %d of %d replicas acknowledged the write", ErrTimeout, acknowledged, required)
	}
	n.writes = append(n.writes, &Written{
		Keyspace: name, Key: key, Value: c.value, Level: level, Deleted: c.deleted, Cluster: p.settings.clusterName,
		Datacenter: p.settings.datacenter, at: c.at,
	})
	return nil
}

// Read reads a row through this node as coordinator, from as many replicas as the level asks for,
// and repairs those it asked. It is empty for a row that none of them has.
func (p *Process) Read(name, key string, level ring.Consistency) (string, error) {
	k, err := p.clientKeyspace(name)
	if err != nil {
		return "", err
	}
	counted := p.counted(level)
	var live []netip.Addr
	for _, a := range p.natural(k.replication, tokenOf(key)) {
		if counted(a) && p.isAlive(a) {
			live = append(live, a)
		}
	}
	required := p.blockFor(k.replication, level)
	if len(live) < required {
		return "", fmt.Errorf("%w %s: %d replicas required, %d alive", ErrUnavailable, level.CQL(), required, len(live))
	}
	p.line.Dice().Shuffle(len(live), func(i, j int) { live[i], live[j] = live[j], live[i] })
	var newest cell
	var asked []*Process
	for _, a := range live {
		other := p.net.byAddress[a]
		if len(asked) == required || other == nil || !p.reaches(other) {
			continue
		}
		asked = append(asked, other)
		if c := other.disk.data[name][key]; c.at > newest.at {
			newest = c
		}
	}
	if len(asked) < required {
		return "", fmt.Errorf("%w: %d of %d replicas answered", ErrTimeout, len(asked), required)
	}
	if newest.at > 0 {
		for _, other := range asked {
			other.disk.put(p.line.Now(), name, key, newest)
		}
	}
	return newest.value, nil // which a deletion has not
}

func (p *Process) clientKeyspace(name string) (keyspace, error) {
	if !p.NativeOpen() {
		return keyspace{}, ErrNoCQL
	}
	k, found := p.schema[name]
	if !found {
		return k, fmt.Errorf("keyspace %s does not exist", name)
	}
	return k, nil
}

// isAlive is the word of this node's failure detector.
func (p *Process) isAlive(a netip.Addr) bool {
	if a == p.address {
		return true
	}
	e := p.gossip.find(a)
	return e != nil && e.alive && !e.state.dead()
}

// counted says whose answers count for a level: those of the own datacenter for the local ones.
func (p *Process) counted(level ring.Consistency) func(netip.Addr) bool {
	if level != ring.LocalOne && level != ring.LocalQuorum {
		return func(netip.Addr) bool { return true }
	}
	return func(a netip.Addr) bool {
		dc, _ := p.locationOf(a)
		return dc == p.settings.datacenter
	}
}

// blockFor is how many replicas a level asks for, counted from the configured factor.
func (p *Process) blockFor(replication ring.Replication, level ring.Consistency) int {
	return blockFor(replication, level, p.settings.datacenter)
}

func blockFor(replication ring.Replication, level ring.Consistency, datacenter string) int {
	switch level {
	case ring.Quorum, ring.EachQuorum:
		return replication.TotalFactor()/2 + 1
	case ring.LocalQuorum:
		return factorIn(replication, datacenter)/2 + 1
	case ring.All:
		return replication.TotalFactor()
	case ring.Two:
		return 2
	case ring.Three:
		return 3
	default:
		return 1
	}
}

func factorIn(replication ring.Replication, datacenter string) int {
	if replication.Strategy() == ring.NetworkTopologyStrategy {
		return replication.Factor(datacenter)
	}
	return replication.TotalFactor()
}

// writeTo has a replica write, and says whether it acknowledged.
func (p *Process) writeTo(a netip.Addr, name, key string, c cell) bool {
	if !p.isAlive(a) {
		return false
	}
	other := p.net.byAddress[a]
	if other == nil || !p.reaches(other) {
		return false
	}
	if !other.disk.full {
		other.disk.put(p.line.Now(), name, key, c)
	}
	if other.diesOfFullDisk() {
		return false
	}
	other.loadChanges()
	return true
}

// diesOfFullDisk ends a JVM that has no room for what it has to write (disk_failure_policy die).
func (p *Process) diesOfFullDisk() bool {
	if p.disk.full {
		refused := outOfSpace()
		p.Die(refused.code, refused.line)
	}
	return p.disk.full
}

// keepHint keeps a write for a replica that did not take it, unless it has been away for too long.
func (p *Process) keepHint(a netip.Addr, h hint) {
	host, found := p.metadata.hosts[a]
	if !found || p.hotValue(hotByKey["hinted_handoff_enabled"]) == "false" {
		return
	}
	if e := p.gossip.find(a); e != nil && !e.alive {
		window := time.Duration(p.hotInteger("max_hint_window")) * time.Millisecond
		if p.line.Now().Sub(e.silentSince) > window {
			return
		}
	}
	if len(p.disk.hints[host]) == 0 {
		p.line.After(hintDelay, "hints", func() { p.sendHints(host) })
	}
	p.disk.hints[host] = append(p.disk.hints[host], h)
}

// onAlive sends what was kept for a node that is back.
func (p *Process) onAlive(e *entry) {
	if host := e.state.hostID; len(p.disk.hints[host]) > 0 {
		p.line.After(hintDelay, "hints", func() { p.sendHints(host) })
	}
}

// PauseHints has this JVM send no hints until it is taken back (nodetool pausehandoff).
func (p *Process) PauseHints(paused bool) { p.hintsPaused = paused }

// RepairIncrementally has this JVM take part in as many incremental repairs as a user has begun.
func (p *Process) RepairIncrementally(repairs int) { p.incremental = repairs }

// IncrementalRepairs that this JVM takes part in.
func (p *Process) IncrementalRepairs() int { return p.incremental }

func (p *Process) repairSessions([]json.RawMessage) (json.RawMessage, *javaError) {
	return json.RawMessage("[" + strings.TrimSuffix(strings.Repeat("{},", p.incremental), ",") + "]"), nil
}

func (p *Process) sendHints(host string) {
	hints := p.disk.hints[host]
	if p.ended || p.drained || len(hints) == 0 {
		return
	}
	if p.frozen || p.hintsPaused {
		p.line.After(hintDelay, "hints", func() { p.sendHints(host) })
		return
	}
	a, found := p.metadata.byHost[host]
	if !found || !p.isAlive(a) {
		return // it will be told when the node is back
	}
	other := p.net.byAddress[a]
	if other == nil || !p.reaches(other) {
		p.line.After(hintDelay, "hints", func() { p.sendHints(host) })
		return
	}
	for _, h := range hints {
		if h.cell.deleted && !p.line.Now().Before(h.cell.until) {
			continue
		}
		other.disk.put(p.line.Now(), h.keyspace, h.key, h.cell)
	}
	delete(p.disk.hints, host)
}
