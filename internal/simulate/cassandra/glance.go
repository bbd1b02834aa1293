package cassandra

import "helenus.io/helenus/internal/agent/disk"

// Glance is all that decides what a node answers about itself and the ring, heartbeats aside: two
// that are equal mean equal answers. It is for worlds that look very often, since the client's
// decoding of an answer costs far more than the rest.
type Glance struct {
	process                                   *Process
	version, metadata                         int
	mode, hostID                              string
	word                                      disk.Bootstrapped
	answers, beans, proxy, frozen             bool
	joined, inited, native, draining, drained bool
	failed, leaving, leaveFail, gossips       bool
}

// Glance is taken at no cost.
func (p *Process) Glance() Glance {
	return Glance{
		process: p, version: p.version, metadata: p.metadata.version, mode: p.mode, hostID: p.hostID,
		word:    p.disk.word(),
		answers: p.answers && !p.ended, beans: p.beans, proxy: p.proxy, frozen: p.frozen, joined: p.joined,
		inited: p.inited, native: p.native,
		draining: p.draining, drained: p.drained, failed: p.failed, leaving: p.leaving, leaveFail: p.leaveFail,
		gossips: p.gossip.active,
	}
}
