package cassandra

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"helenus.io/helenus/internal/core/ring"
)

// repair is one that was started on this node, by its command number, which is its place in the
// list and one.
type repair struct {
	keyspace string
	state    string
	messages []string
}

const repairRuns = "IN_PROGRESS"

// repairAsync starts a repair and answers its number, 0 where there is nothing to repair.
func (p *Process) repairAsync(arguments []json.RawMessage) (json.RawMessage, *javaError) {
	name, k, failed := p.keyspaceOf(arguments, 0)
	if failed != nil {
		return nil, p.assertKeyspace(name, failed)
	}
	options, failed := argument[map[string]string](arguments, 1)
	if failed != nil {
		return nil, failed
	}
	if p.drained || p.mode != modeNormal {
		return nil, exception(illegalState, "Node is not in NORMAL mode")
	}
	if k.replication.TotalFactor() < 2 || p.ringsNow().present.Len() < 2 {
		return formatInt(0), nil
	}
	var datacenters []string
	if text := options["dataCenters"]; text != "" {
		datacenters = strings.Split(text, ",")
		if !slices.Contains(datacenters, p.settings.datacenter) {
			return nil, exception(illegalArgument, "the local data center must be part of the repair; requested %s, "+
				"but DC is %s", text, p.settings.datacenter)
		}
	}
	ranges, failed := p.rangesOf(options["ranges"])
	if failed != nil {
		return nil, failed
	}
	var hosts []string
	if text := options["hosts"]; text != "" {
		hosts = strings.Split(text, ",")
		if options["primaryRange"] == "true" {
			return nil, exception(illegalArgument, "You need to run primary range repair on all nodes in the "+
				"cluster.")
		}
	}
	if slices.ContainsFunc(p.repairs, func(r *repair) bool { return r.keyspace == name && r.state == repairRuns }) {
		p.net.beside(p, "repair of keyspace "+name)
	}
	r := &repair{keyspace: name, state: repairRuns, messages: []string{"Starting repair command"}}
	p.repairs = append(p.repairs, r)
	p.spawn("repair", func() {
		p.sleepUnless(func() bool { return r.state != repairRuns },
			p.net.prolonged+p.net.options.StreamTime+p.net.within(0, time.Second))
		if r.state != repairRuns {
			return
		}
		if err := p.repairRanges(name, k.replication, options["primaryRange"] == "true", datacenters, hosts,
			ranges); err != "" {
			r.state, r.messages = "FAILED", []string{err}
			return
		}
		r.state, r.messages = "COMPLETED", []string{"Repair completed successfully"}
	})
	return formatInt(len(p.repairs)), nil
}

// terminateRepairs fails those that it has started, and those of others that it takes part in: here
// all that run.
func (p *Process) terminateRepairs() *javaError {
	for _, other := range p.net.running {
		for _, r := range other.repairs {
			switch {
			case r.state != repairRuns:
				continue
			case other == p:
				r.state, r.messages = "FAILED", []string{"Terminate session is called"}
			default:
				r.state, r.messages = "FAILED", []string{"Parent repair session has failed."}
				p.net.doubled = append(p.net.doubled, "the repair of "+other.address.String()+" is ended by "+
					p.address.String())
			}
		}
		other.notify()
	}
	return nil
}

// rangesOf reads the option of the name. The product asks for none that wraps around.
func (p *Process) rangesOf(text string) ([]ring.Range, *javaError) {
	if text == "" {
		return nil, nil
	}
	var out []ring.Range
	for _, part := range strings.Split(text, ",") {
		var r ring.Range
		if _, err := fmt.Sscanf(part, "%d:%d", &r.Start, &r.End); err != nil || r.Start >= r.End {
			return nil, exception(illegalArgument, "Invalid range %s", part)
		}
		out = append(out, r)
	}
	return out, nil
}

// assertKeyspace is what an unknown keyspace comes to where Cassandra asserts that it is known:
// with assertions on, as in the image's options, an Error.
func (p *Process) assertKeyspace(name string, otherwise *javaError) *javaError {
	if !p.settings.assertions {
		return otherwise
	}
	return exception(runtimeError, "java.lang.AssertionError: Unknown keyspace %s", name)
}

// repairRanges makes the replicas of this node's ranges the same.
func (p *Process) repairRanges(name string, replication ring.Replication, primary bool,
	datacenters, hosts []string, ranges []ring.Range) string {
	present := p.ringsNow().present
	keys := map[string]bool{}
	replicas := func(t ring.Token) ([]*Process, string) {
		natural := present.endpoints(replication, t)
		if !slices.Contains(natural, p.address) || primary && natural[0] != p.address {
			return nil, ""
		}
		if len(hosts) > 0 { // ActiveRepairService#getNeighbors
			natural = slices.DeleteFunc(slices.Clone(natural),
				func(a netip.Addr) bool { return !slices.Contains(hosts, a.String()) })
			if !slices.Contains(natural, p.address) {
				return nil, "The current host must be part of the repair"
			}
			if len(natural) < 2 {
				return nil, "Specified hosts do not share range needed for repair"
			}
		}
		var out []*Process
		for _, a := range natural {
			if dc, _ := p.locationOf(a); len(datacenters) > 0 && !slices.Contains(datacenters, dc) {
				continue
			}
			other := p.liveProcess(a)
			if a == p.address {
				other = p
			}
			if other == nil {
				return nil, "Endpoint not alive: /" + p.net.name(a)
			}
			out = append(out, other)
		}
		return out, ""
	}
	for _, end := range present.Tokens() {
		if _, problem := replicas(end); problem != "" {
			return "Some repair failed: " + problem
		}
	}
	for _, other := range p.net.running {
		for key := range other.disk.data[name] {
			keys[key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		token := tokenOf(key)
		if len(ranges) > 0 && !slices.ContainsFunc(ranges,
			func(r ring.Range) bool { return r.Start < token && token <= r.End }) {
			continue
		}
		members, _ := replicas(token)
		var newest cell
		for _, m := range members {
			if c := m.disk.data[name][key]; c.at > newest.at {
				newest = c
			}
		}
		if newest.at == 0 {
			continue
		}
		for _, m := range members {
			m.disk.putStreamed(name, key, newest)
		}
	}
	return ""
}

// repairStatus is where a repair of this JVM stands; null for one that it does not know.
func (p *Process) repairStatus(arguments []json.RawMessage) (json.RawMessage, *javaError) {
	number, failed := argument[int](arguments, 0)
	if failed != nil {
		return nil, failed
	}
	if number < 1 || number > len(p.repairs) {
		return jsonNull, nil
	}
	r := p.repairs[number-1]
	return appendTexts(nil, append([]string{r.state}, r.messages...)), nil
}
