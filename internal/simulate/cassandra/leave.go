package cassandra

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"helenus.io/helenus/internal/agent/disk"
	"helenus.io/helenus/internal/core/ring"
)

// decommission leaves the ring: the others are told, the data is streamed to those who take it
// over, and after another ring delay the node is out for good. The JVM stays. What a death in the
// middle leaves on the disk decides what the next start does.
func (p *Process) decommission(arguments []json.RawMessage) (json.RawMessage, *javaError) {
	force, failed := argument[bool](arguments, 0)
	if failed != nil {
		return nil, failed
	}
	switch {
	case p.leaving && !p.is50():
		return nil, exception(illegalState, "Node is still decommissioning. Check nodetool netstats.")
	case p.is50() && (p.mode == modeDecommissioned || p.leaving):
		return jsonNull, nil
	}
	if failed := p.mayLeave(); failed != nil {
		return nil, failed
	}
	p.leaving, p.leaveFail = true, false
	defer func() { p.leaving = false }()
	fail := func(failed *javaError) (json.RawMessage, *javaError) {
		p.leaveFail = true
		if p.is50() {
			p.mode = modeDecommissionFailed
		}
		p.changed()
		return nil, failed
	}
	if p.mode != modeLeaving {
		if failed := p.leavesEnough(force); failed != nil {
			return fail(failed)
		}
		if p.isPendingTarget() {
			return fail(exception(unsupportedOperation,
				"data is currently moving to this node; unable to leave the ring"))
		}
	}
	p.mode = modeLeaving
	p.metadata.version++
	p.metadata.leaving[p.address] = true
	p.announce(func(s *state) { s.word, s.status = statusLeaving, statusLeaving+","+s.tokens[0].String() })
	p.sleep(p.settings.ringDelay)
	if err := p.transfer(p.leavingPieces()); err != nil {
		return fail(exception(runtimeException, "Error while decommissioning node: %v", err))
	}
	p.leaveRing()
	p.sleep(max(p.settings.ringDelay, 2*time.Second))
	p.native, p.messaging = false, false
	p.gossip.active = false
	p.net.reconnect()
	p.disk.setWord(disk.Decommissioned)
	p.mode = modeDecommissioned
	p.changed()
	return jsonNull, nil
}

// leaveRing is the point from which the node owns nothing.
func (p *Process) leaveRing() {
	p.disk.setWord(disk.NeedsBootstrap)
	p.metadata.remove(p.address)
	p.joined = false
	expires := p.now().Add(leftFor)
	p.announce(func(s *state) {
		s.word, s.expires = statusLeft, expires
		s.status = fmt.Sprintf("%s,%s,%d", statusLeft, s.tokens[0], expires.UnixMilli())
	})
}

func (p *Process) mayLeave() *javaError {
	if !p.metadata.isMember(p.address) {
		return exception(unsupportedOperation, "local node is not a member of the token ring yet")
	}
	if len(p.metadata.owned) < 2 || p.ringsNow().present.Len() < 2 {
		return exception(unsupportedOperation, "no other normal nodes in the ring; decommission would be pointless")
	}
	if p.mode != modeNormal && p.mode != modeLeaving && p.mode != modeDecommissionFailed {
		return exception(unsupportedOperation, "Node in %s state; wait for status to become normal or restart", p.mode)
	}
	return nil
}

// leavesEnough says whether every keyspace has as many nodes as replicas without this one; force
// does not ask.
func (p *Process) leavesEnough(force bool) *javaError {
	if force {
		return nil
	}
	for _, name := range p.schema.names() {
		k := p.schema[name]
		factor, nodes := k.replication.TotalFactor(), p.ringsNow().present.Len()
		if k.replication.Strategy() == ring.NetworkTopologyStrategy {
			factor, nodes = k.replication.Factor(p.settings.datacenter), 0
			for _, n := range p.ringsNow().present.Nodes() {
				if n.Datacenter == p.settings.datacenter {
					nodes++
				}
			}
		}
		if factor > 0 && nodes <= factor {
			return exception(unsupportedOperation, "Not enough live nodes to maintain replication factor in keyspace "+
				"%s (RF = %d, N = %d). Perform a forceful decommission to ignore.",
				name, factor, nodes)
		}
	}
	return nil
}

// isPendingTarget says that ranges are on their way to this node.
func (p *Process) isPendingTarget() bool {
	for _, name := range p.schema.names() {
		if slices.ContainsFunc(p.pending(p.schema[name].replication),
			func(r pendingRange) bool { return slices.Contains(r.to, p.address) }) {
			return true
		}
	}
	return false
}

// leavingPieces are what the leaver sends to those that take its place.
func (p *Process) leavingPieces() []piece {
	before := p.ringsNow().present
	after := circleOf(before.Without(p.address.String()))
	var pieces []piece
	for _, name := range p.schema.names() {
		forEachRange(before, after, p.schema[name].replication, func(of ring.Range, was, is []netip.Addr) {
			if !slices.Contains(was, p.address) {
				return
			}
			for _, a := range is {
				if to := p.net.byAddress[a]; !slices.Contains(was, a) && to != nil {
					pieces = append(pieces, piece{name, of, p, to})
				}
			}
		})
	}
	return pieces
}

// removeNode declares a dead member removed: the survivors restore its replicas among themselves.
func (p *Process) removeNode(arguments []json.RawMessage) (json.RawMessage, *javaError) {
	host, failed := argument[string](arguments, 0)
	if failed != nil {
		return nil, failed
	}
	const groups = 5
	if len(strings.Split(host, "-")) != groups {
		return nil, exception(illegalArgument, "Invalid UUID string: %s", host)
	}
	a, found := p.metadata.byHost[host]
	switch {
	case !found:
		return nil, exception(unsupportedOperation, "Host ID not found.")
	case a == p.address:
		return nil, exception(unsupportedOperation, "Cannot remove self")
	case !p.metadata.isMember(a):
		return nil, exception(unsupportedOperation, "Node to be removed is not a member of the token ring")
	case p.isAlive(a):
		return nil, exception(unsupportedOperation,
			"Node /%s is alive and owns this ID. Use decommission command to remove it from the ring", p.net.name(a))
	case p.removal != "":
		return nil, exception(unsupportedOperation, "This node is already processing a removal. Wait for it to "+
			"complete, or use 'removenode force' if this has failed.")
	}
	e := p.gossip.find(a)
	p.removal = fmt.Sprintf("Removing token (%s). Waiting for replication confirmation.",
		p.metadata.tokensOf(a)[0])
	defer func() { p.removal = "" }()
	p.declare(e, func(s *state) { s.word, s.status, s.remover = statusRemoving, statusRemoving+","+host, p.hostID })
	p.sleep(p.settings.ringDelay)
	if err := p.transfer(p.restoringPieces(a)); err != nil {
		return nil, exception(runtimeException, "%v", err)
	}
	expires := p.now().Add(leftFor)
	p.declare(e, func(s *state) {
		s.word, s.expires = statusRemoved, expires
		s.status = fmt.Sprintf("%s,%s,%d", statusRemoved, host, expires.UnixMilli())
	})
	return jsonNull, nil
}

// declare says something by gossip in the name of a dead node, as a generation after its last.
func (p *Process) declare(e *entry, change func(s *state)) {
	next := *e.state
	change(&next)
	next.generation++
	next.stopped = max(next.heartbeat(e.silentSince), 1)
	p.publish(e, &next)
	p.markDead(e)
	p.onStatus(e)
}

// restoringPieces are what the survivors send each other to have all replicas again.
func (p *Process) restoringPieces(gone netip.Addr) []piece {
	before := p.ringsNow().present
	after := circleOf(before.Without(gone.String()))
	var pieces []piece
	for _, name := range p.schema.names() {
		forEachRange(before, after, p.schema[name].replication, func(of ring.Range, was, is []netip.Addr) {
			for _, a := range is {
				to := p.liveProcess(a)
				if slices.Contains(was, a) || to == nil {
					continue
				}
				for _, s := range was {
					if from := p.liveProcess(s); s != gone && from != nil {
						pieces = append(pieces, piece{name, of, from, to})
						break
					}
				}
			}
		})
	}
	return pieces
}

// assassinate says that an endpoint has left, in its name: Gossiper#assassinateEndpoint. Of one
// that is known it waits first whether it speaks.
func (p *Process) assassinate(arguments []json.RawMessage) (json.RawMessage, *javaError) {
	address, failed := addressArgument(arguments)
	if failed != nil {
		return nil, failed
	}
	expires := p.now().Add(leftFor)
	left := func(s *state) {
		s.word, s.expires = statusLeft, expires
		s.status = fmt.Sprintf("%s,%s,%d", statusLeft, ring.Token(p.line.Dice().Int64()), expires.UnixMilli())
	}
	const rounds = 4 * time.Second
	if e := p.gossip.find(address); e != nil {
		before := e.state
		p.sleep(p.settings.ringDelay)
		if e = p.gossip.find(address); e == nil || e.flows || e.state.generation != before.generation {
			return nil, exception(runtimeException, "Endpoint still alive: /%s generation changed while trying to "+
				"assassinate it", p.net.name(address))
		}
		p.declare(e, left)
		p.sleep(rounds)
		return jsonNull, nil
	}
	const lead, beats = 60, 9999
	s := &state{generation: p.now().Unix() + lead, stopped: beats, version: beats}
	left(s)
	e := &entry{address: address, state: s}
	p.gossip.add(e)
	p.publish(e, s)
	p.markDead(e)
	p.onStatus(e)
	p.sleep(rounds)
	return jsonNull, nil
}
