package nodeview

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Status is the first word of what a node says in gossip about its place in the ring. Words that
// are not listed here are kept as they are; empty means that the node has not said anything yet, as
// in the first seconds of a start.
type Status string

// Statuses of Cassandra 4.1 and 5.0.
const (
	StatusBootstrapping          Status = "BOOT"
	StatusBootstrappingToReplace Status = "BOOT_REPLACE"
	StatusNormal                 Status = "NORMAL"
	StatusLeaving                Status = "LEAVING"
	StatusLeft                   Status = "LEFT"
	StatusMoving                 Status = "MOVING"
	StatusRemoving               Status = "removing"
	StatusRemoved                Status = "removed"
	StatusHibernate              Status = "hibernate"
	StatusShutdown               Status = "shutdown"
)

// GossipState is what one node knows of another (or of itself) by gossip. Fields that were not
// gossiped are zero.
type GossipState struct {
	Endpoint netip.AddrPort
	// Generation is the start of that JVM in seconds since 1970; zero if it is known from disk
	// only.
	Generation int64
	// Heartbeat counts up about once a second while the node gossips; 2147483647 is the last word
	// of a node that was stopped in order.
	Heartbeat int64
	// Alive is the word of the failure detector.
	Alive  bool
	Status Status
	// StatusArguments are the parts after the status: a token; the address that is replaced for
	// BOOT_REPLACE; the host id for removing and removed.
	StatusArguments []string
	// StatusExpires is when a node that left or was removed is forgotten.
	StatusExpires  time.Time
	Datacenter     string
	Rack           string
	HostID         string
	ReleaseVersion string
	SchemaVersion  string
	// LoadBytes is the size of its live data files, gossiped once a minute.
	LoadBytes int64
	// InternalAddress is where it listens for peers and NativeAddress where for clients.
	InternalAddress netip.AddrPort
	NativeAddress   netip.AddrPort
	// NativeTransportReady says whether it has opened CQL since it started. It stays true when CQL
	// is closed over JMX, so it is no sign that clients are served.
	NativeTransportReady bool
	// HasTokens says whether it has announced its tokens; gossip does not show which.
	HasTokens bool
}

// ParseGossip reads the text of FailureDetector.AllEndpointStatesWithPort and returns the states in
// the order of their endpoints. Application states that it does not know are skipped; anything of
// another form is an error, since half an entry would be taken for a whole one.
func ParseGossip(text string) ([]GossipState, error) {
	var states []GossipState
	var current *gossipEntry
	finish := func() error {
		if current == nil {
			return nil
		}
		state, err := current.state()
		if err != nil {
			return fmt.Errorf("parse gossip of %s: %w", current.endpoint, err)
		}
		states = append(states, state)
		return nil
	}
	for number, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if text == "" {
			break
		}
		if !strings.HasPrefix(line, "  ") {
			if err := finish(); err != nil {
				return nil, err
			}
			endpoint, err := parseEndpoint(line)
			if err != nil {
				return nil, fmt.Errorf("parse gossip, line %d: %w", number+1, err)
			}
			current = &gossipEntry{endpoint: endpoint, values: map[string]string{}}
			continue
		}
		if current == nil {
			return nil, fmt.Errorf("parse gossip, line %d: %q stands before any endpoint", number+1, line)
		}
		if err := current.add(line); err != nil {
			return nil, fmt.Errorf("parse gossip of %s, line %d: %w", current.endpoint, number+1, err)
		}
	}
	if err := finish(); err != nil {
		return nil, err
	}
	slices.SortFunc(states, func(a, b GossipState) int { return a.Endpoint.Compare(b.Endpoint) })
	for i := 1; i < len(states); i++ {
		if states[i].Endpoint == states[i-1].Endpoint {
			return nil, fmt.Errorf("parse gossip: %s comes twice", states[i].Endpoint)
		}
	}
	return states, nil
}

// gossipEntry collects the lines of one endpoint.
type gossipEntry struct {
	endpoint netip.AddrPort
	values   map[string]string
}

// Names of the lines that carry no version number.
const (
	lineGeneration = "generation"
	lineHeartbeat  = "heartbeat"
	// noTokens is the whole line of a node without tokens.
	noTokens = "TOKENS: not present"
)

// add reads one line: "generation:1", "heartbeat:2", "TOKENS: not present", or
// "NAME:version:value", whose value may contain colons.
func (e *gossipEntry) add(line string) error {
	line = strings.TrimPrefix(line, "  ")
	if line == noTokens {
		return nil
	}
	name, value, found := strings.Cut(line, ":")
	if !found || name == "" {
		return fmt.Errorf("%q is not of the form name:value", line)
	}
	if name != lineGeneration && name != lineHeartbeat {
		version, rest, found := strings.Cut(value, ":")
		if _, err := strconv.ParseInt(version, 10, 64); err != nil || !found {
			return fmt.Errorf("%q is not of the form name:version:value", line)
		}
		value = rest
	}
	if _, twice := e.values[name]; twice {
		return fmt.Errorf("%s comes twice", name)
	}
	e.values[name] = value
	return nil
}

// state gives the collected values their types.
func (e *gossipEntry) state() (GossipState, error) {
	s := GossipState{
		Endpoint:             e.endpoint,
		Datacenter:           e.values["DC"],
		Rack:                 e.values["RACK"],
		HostID:               e.values["HOST_ID"],
		ReleaseVersion:       e.values["RELEASE_VERSION"],
		SchemaVersion:        e.values["SCHEMA"],
		NativeTransportReady: e.values["RPC_READY"] == "true",
	}
	_, s.HasTokens = e.values["TOKENS"]
	var problems []error
	s.Generation = e.integer(lineGeneration, &problems)
	s.Heartbeat = e.integer(lineHeartbeat, &problems)
	s.InternalAddress = e.address("INTERNAL_ADDRESS_AND_PORT", &problems)
	s.NativeAddress = e.address("NATIVE_ADDRESS_AND_PORT", &problems)
	if load, found := e.values["LOAD"]; found {
		bytes, err := strconv.ParseFloat(load, 64)
		if err != nil || !(bytes >= 0 && bytes < 1<<63) {
			problems = append(problems, fmt.Errorf("LOAD is %q, not a number of bytes", load))
		} else {
			s.LoadBytes = int64(bytes)
		}
	}
	if err := s.setStatus(e.values); err != nil {
		problems = append(problems, err)
	}
	return s, errors.Join(problems...)
}

// integer reads a number that every entry has.
func (e *gossipEntry) integer(name string, problems *[]error) int64 {
	number, err := strconv.ParseInt(e.values[name], 10, 64)
	if err != nil {
		*problems = append(*problems, fmt.Errorf("%s is %q, not a number", name, e.values[name]))
	}
	return number
}

// address reads an address that an entry may have.
func (e *gossipEntry) address(name string, problems *[]error) netip.AddrPort {
	text, found := e.values[name]
	if !found {
		return netip.AddrPort{}
	}
	address, err := parseEndpoint(text)
	if err != nil {
		*problems = append(*problems, fmt.Errorf("%s: %w", name, err))
	}
	return address
}

// setStatus reads the status with its arguments: "NORMAL,<token>", "LEFT,<token>,<expiry in ms>",
// "removed,<host id>,<expiry in ms>". Nodes that use one storage port, as all do since 4.0, gossip
// it as STATUS_WITH_PORT; STATUS is for their elders and may be missing.
func (s *GossipState) setStatus(values map[string]string) error {
	text, found := values["STATUS_WITH_PORT"]
	if !found {
		text = values["STATUS"]
	}
	if text == "" {
		return nil
	}
	parts := strings.Split(text, ",")
	s.Status = Status(parts[0])
	s.StatusArguments = parts[1:]
	if s.Status != StatusLeft && s.Status != StatusRemoved {
		return nil
	}
	const arguments = 2
	if len(s.StatusArguments) != arguments {
		return fmt.Errorf("status is %q, without the time at which it expires", text)
	}
	milliseconds, err := strconv.ParseInt(s.StatusArguments[1], 10, 64)
	if err != nil {
		return fmt.Errorf("status is %q: expiry is not a number of milliseconds", text)
	}
	s.StatusExpires = time.UnixMilli(milliseconds).UTC()
	return nil
}
