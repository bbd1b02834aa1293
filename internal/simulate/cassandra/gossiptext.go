package cassandra

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// entryText is the text of one endpoint in AllEndpointStatesWithPort, escaped for JSON, before and
// after the heartbeat, and of which state it is.
type entryText struct {
	of            *state
	before, after string
}

// appendGossip writes what gossip holds, as the FailureDetector prints it.
func (p *Process) appendGossip(out []byte) []byte {
	out = append(out, '"')
	now := p.line.Now()
	for _, e := range p.gossip.entries {
		if e.text.of != e.state {
			e.text = p.textOf(e)
		}
		out = append(out, e.text.before...)
		out = strconv.AppendInt(out, p.heartbeatOf(e, now), 10)
		out = append(out, e.text.after...)
	}
	return append(out, '"')
}

// heartbeatOf is the last heartbeat of an endpoint that came in: they arrive for as long as they
// flow, a point late.
func (p *Process) heartbeatOf(e *entry, now time.Time) int64 {
	const late = time.Second
	switch {
	case e.address == p.address && p.gossip.active:
	case e.flows:
		now = now.Add(-late)
	default:
		now = e.silentSince
	}
	// What comes in a quarantine is not taken in.
	if until, found := p.gossip.quarantined[e.address]; found && now.After(until.Add(-quarantineDelay-late)) {
		now = until.Add(-quarantineDelay - late)
	}
	return max(e.state.heartbeat(now), 0)
}

// textOf writes an entry. Of itself a node also prints the states that only older releases read.
func (p *Process) textOf(e *entry) entryText {
	s, name := e.state, p.net.name(e.address)
	var b strings.Builder
	line := func(name string, version int64, value string) {
		if value != "" {
			fmt.Fprintf(&b, `  %s:%d:%s\n`, name, version, value)
		}
	}
	own := e.address == p.address
	if own {
		line("STATUS", s.version, s.status)
	}
	if s.load > 0 {
		line("LOAD", s.version, strconv.FormatFloat(float64(s.load), 'f', 1, 64))
	}
	if s.schema != "" && s.schema != emptySchema {
		line("SCHEMA", s.version, s.schema)
	}
	line("DC", 12, s.dc)
	line("RACK", 14, s.rack)
	line("RELEASE_VERSION", 5, s.release)
	if own {
		line("INTERNAL_IP", 10, e.address.String())
		line("RPC_ADDRESS", 4, s.native.Addr().String())
	}
	if s.remover != "" {
		line("REMOVAL_COORDINATOR", s.version, "REMOVER,"+s.remover)
	}
	if s.generation > 0 {
		line("NET_VERSION", 1, "12")
	}
	line("HOST_ID", 2, s.hostID)
	if s.readySaid {
		line("RPC_READY", s.version, strconv.FormatBool(s.ready))
	}
	if s.internal.IsValid() {
		line("INTERNAL_ADDRESS_AND_PORT", 8, s.internal.String())
		line("NATIVE_ADDRESS_AND_PORT", 3, s.native.String())
	}
	line("STATUS_WITH_PORT", s.version, s.status)
	if s.generation > 0 {
		line("SSTABLE_VERSIONS", 6, "big-nb")
	}
	if len(s.tokens) > 0 {
		line("TOKENS", s.version, "<hidden>")
	} else {
		b.WriteString(`  TOKENS: not present\n`)
	}
	return entryText{of: s, before: fmt.Sprintf(`/%s\n  generation:%d\n  heartbeat:`, name, s.generation),
		after: `\n` + b.String()}
}
