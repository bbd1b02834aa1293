package cassandra

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"helenus.io/helenus/internal/core/facts"
)

// parseGossip reads the text of FailureDetector.AllEndpointStatesWithPort and returns the entries
// in the order of their endpoints. Anything of another form is an error, since half an entry would
// be taken for a whole one.
func parseGossip(text string) ([]gossipEntry, error) {
	var entries []gossipEntry
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSuffix(line, "\n")
		if !strings.HasPrefix(line, "  ") {
			endpoint, err := parseEndpoint(line)
			if err != nil {
				return nil, fmt.Errorf("parse gossip, line %d: %w", number, err)
			}
			entries = append(entries, gossipEntry{endpoint: endpoint, values: map[string]string{}})
			continue
		}
		if len(entries) == 0 {
			return nil, fmt.Errorf("parse gossip, line %d: %q stands before any endpoint", number, line)
		}
		current := entries[len(entries)-1]
		if err := current.add(line); err != nil {
			return nil, fmt.Errorf("parse gossip of %s, line %d: %w", current.endpoint, number, err)
		}
	}
	slices.SortFunc(entries, func(a, b gossipEntry) int { return a.endpoint.Compare(b.endpoint) })
	for i, e := range entries {
		if i > 0 && e.endpoint == entries[i-1].endpoint {
			return nil, fmt.Errorf("parse gossip: %s comes twice", e.endpoint)
		}
	}
	return entries, nil
}

// gossipEntry collects the lines of one endpoint.
type gossipEntry struct {
	endpoint netip.AddrPort
	values   map[string]string
}

// noTokens is the whole line of a node without tokens.
const noTokens = "TOKENS: not present"

// unversioned are the lines that carry no version number. Every entry has both.
var unversioned = map[string]bool{"generation": true, "heartbeat": true}

// add reads one line: "generation:1", "heartbeat:2", "TOKENS: not present", or
// "NAME:version:value", whose value may contain colons.
func (e gossipEntry) add(line string) error {
	line = strings.TrimPrefix(line, "  ")
	if line == noTokens {
		return nil
	}
	name, value, found := strings.Cut(line, ":")
	if !found || name == "" {
		return fmt.Errorf("%q is not of the form name:value", line)
	}
	version := value
	if !unversioned[name] {
		version, value, found = strings.Cut(value, ":")
	}
	if _, err := strconv.ParseInt(version, 10, 64); err != nil || !found {
		return fmt.Errorf("%q has no number after its name", line)
	}
	if _, twice := e.values[name]; twice {
		return fmt.Errorf("%s comes twice", name)
	}
	e.values[name] = value
	return nil
}

// facts are the collected values that anything is decided on. Nodes that use one storage port, as
// all do since 4.0, gossip their status as STATUS_WITH_PORT; STATUS is for their elders and may be
// missing. Behind the first word are its arguments.
func (e gossipEntry) facts() (facts.Endpoint, error) {
	for name := range unversioned {
		if _, found := e.values[name]; !found {
			return facts.Endpoint{}, fmt.Errorf("gossip of %s has no %s", e.endpoint, name)
		}
	}
	said, found := e.values["STATUS_WITH_PORT"]
	if !found {
		said = e.values["STATUS"]
	}
	status, _, _ := strings.Cut(said, ",")
	out := facts.Endpoint{
		Address:       e.endpoint.Addr().String(),
		HostID:        e.values["HOST_ID"],
		Datacenter:    e.values["DC"],
		Rack:          e.values["RACK"],
		Status:        facts.GossipStatus(strings.ToUpper(status)),
		Release:       e.values["RELEASE_VERSION"],
		SchemaVersion: e.values["SCHEMA"],
	}
	if load, found := e.values["LOAD"]; found {
		bytes, err := strconv.ParseFloat(load, 64)
		if err != nil || !(bytes >= 0 && bytes < 1<<63) {
			return facts.Endpoint{}, fmt.Errorf("gossip of %s: LOAD is %q, not a number of bytes", e.endpoint, load)
		}
		out.Load = int64(bytes)
	}
	return out, nil
}
