package cassandra

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	"helenus.io/helenus/internal/core/ring"
)

// rebuildPieces says what is streamed from whom. A range of more than one replica that nobody in
// the datacenter can send is an error (RangeStreamer#handleSourceNotFound).
func (p *Process) rebuildPieces(present *circle, source, only *string) (pieces []piece, failed *javaError) {
	for _, name := range p.schema.names() {
		if only != nil && *only != name {
			continue
		}
		replication := p.schema[name].replication
		forEachRange(present, present, replication, func(of ring.Range, was, _ []netip.Addr) {
			if !slices.Contains(was, p.address) {
				return
			}
			for _, a := range was {
				if dc, _ := p.locationOf(a); source != nil && dc != *source || a == p.address {
					continue
				}
				if from := p.liveProcess(a); from != nil {
					pieces = append(pieces, piece{name, of, from, p})
					return
				}
			}
			if rf := replication.TotalFactor(); rf > 1 {
				failed = exception(illegalState, "Unable to find sufficient sources for streaming range %s in "+
					"keyspace %s with RF=%d", of, name, rf)
			}
		})
	}
	return pieces, failed
}

// Rebuilds says that a rebuild is under way.
func (p *Process) Rebuilds() bool { return p.rebuilding }

// rebuild streams the node's ranges from a datacenter.
func (p *Process) rebuild(arguments []json.RawMessage) (json.RawMessage, *javaError) {
	source, failed := argument[*string](arguments, 0)
	if failed != nil {
		return nil, failed
	}
	var only *string
	if len(arguments) > 1 {
		if only, failed = argument[*string](arguments, 1); failed != nil {
			return nil, failed
		}
	}
	present := p.ringsNow().present
	if source != nil && !slices.Contains(present.datacenters(), *source) {
		return nil, exception(illegalArgument, "Provided datacenter '%s' is not a valid datacenter, available "+
			"datacenters are: %s", *source, strings.Join(present.datacenters(), ","))
	}
	if only != nil {
		if _, found := p.schema[*only]; !found {
			return nil, p.assertKeyspace(*only, exception(illegalArgument, "Unknown keyspace '%s'", *only))
		}
	}
	if p.rebuilding {
		return nil, exception(illegalState, "Node is still rebuilding. Check nodetool netstats.")
	}
	p.rebuilding = true
	defer func() { p.rebuilding = false }()
	pieces, failed := p.rebuildPieces(present, source, only)
	if failed != nil {
		return nil, failed
	}
	pieces, problem := p.withoutAvailable(pieces, false)
	if problem != "" {
		return nil, exception(illegalState, "%s", problem)
	}
	if err := p.stream(pieces); err != nil {
		return nil, exception(runtimeException, "Error while rebuilding node: %v", err)
	}
	return jsonNull, nil
}
