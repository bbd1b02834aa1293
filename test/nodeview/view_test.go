package nodeview

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/jolokia"
)

// TestRecordedViews decodes views that were recorded from real nodes of 4.1 and 5.0 through a
// start, a join, a leave, a removal and a drain.
func TestRecordedViews(t *testing.T) {
	for _, path := range recordings(t, "*.json") {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		t.Run(name, func(t *testing.T) {
			view, err := replayed(t, path).View(context.Background())
			if strings.HasSuffix(name, "-no-beans") {
				if !errors.Is(err, cassandra.ErrStarting) || !errors.Is(err, jolokia.ErrInstanceNotFound) {
					t.Fatalf("error %v, want cassandra.ErrStarting", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if old := strings.HasPrefix(name, "4.1"); old != (view.Bootstrap == nil) ||
				!strings.HasPrefix(name, view.ReleaseVersion+"-") {
				t.Errorf("release %s, bootstrap state %+v", view.ReleaseVersion, view.Bootstrap)
			}
			golden(t, filepath.Join("testdata", name+".golden.json"), view)
		})
	}
}

// TestRecordedModes says outright what the golden files would let pass after an update.
func TestRecordedModes(t *testing.T) {
	for name, want := range map[string]struct {
		mode   Mode
		status Status
		joined bool
		cql    bool
	}{
		"4.1.10-starting":      {ModeStarting, "", false, false},
		"4.1.10-joining":       {ModeJoining, StatusBootstrapping, false, false},
		"4.1.10-normal":        {ModeNormal, StatusNormal, true, true},
		"4.1.10-drained":       {ModeDrained, StatusShutdown, true, false},
		"5.0.6-starting":       {ModeStarting, "", false, false},
		"5.0.6-joining":        {ModeJoining, StatusBootstrapping, false, false},
		"5.0.6-normal":         {ModeNormal, StatusNormal, true, true},
		"5.0.6-leaving":        {ModeLeaving, StatusLeft, false, true},
		"5.0.6-decommissioned": {ModeDecommissioned, StatusLeft, false, false},
		"5.0.6-drained":        {ModeDrained, StatusShutdown, true, false},
	} {
		view, err := replayed(t, filepath.Join("testdata", name+".json")).View(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		own := ownGossip(view)
		if view.Mode != want.mode || own.Status != want.status || view.Joined != want.joined ||
			view.NativeTransportRunning != want.cql {
			t.Errorf("%s: mode %s, status %s, joined %v, CQL %v; want %+v", name, view.Mode, own.Status, view.Joined,
				view.NativeTransportRunning, want)
		}
	}
}

// ownGossip finds the node's own entry by its host id.
func ownGossip(view View) GossipState {
	for _, state := range view.Gossip {
		if state.HostID == view.HostID {
			return state
		}
	}
	return GossipState{}
}

func TestPeersInRecordedViews(t *testing.T) {
	peer := func(name, endpoint string) (View, GossipState) {
		t.Helper()
		view, err := replayed(t, filepath.Join("testdata", name+".json")).View(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, state := range view.Gossip {
			if state.Endpoint == netip.MustParseAddrPort(endpoint) {
				return view, state
			}
		}
		t.Fatalf("%s: no gossip of %s", name, endpoint)
		return View{}, GossipState{}
	}
	if view, state := peer("5.0.6-peer-joining",
		"127.0.50.5:7000"); state.Status != StatusBootstrapping || !state.HasTokens || len(view.Joining) != 1 ||
		view.HostIDs[state.Endpoint] != state.HostID {
		t.Errorf("joining peer: %+v, joining %v, members %v", state, view.Joining, view.HostIDs)
	}
	if view, state := peer("5.0.6-peer-leaving", "127.0.50.5:7000"); state.Status != StatusLeaving ||
		len(view.Leaving) != 1 || view.HostIDs[state.Endpoint] != state.HostID {
		t.Errorf("leaving peer: %+v, leaving %v, members %v", state, view.Leaving, view.HostIDs)
	}
	// A node that left is unreachable for days and no member.
	if view, state := peer("5.0.6-normal", "127.0.50.1:7000"); state.Status != StatusLeft ||
		state.StatusExpires.Year() < 2000 || len(view.Unreachable) != 1 || view.HostIDs[state.Endpoint] != "" {
		t.Errorf("peer that left: %+v, unreachable %v, members %v", state, view.Unreachable, view.HostIDs)
	}
	if _, state := peer("4.1.10-peer-removing", "127.0.41.3:7000"); state.Status != StatusRemoving ||
		len(state.StatusArguments) != 1 || state.Alive {
		t.Errorf("peer that is removed: %+v", state)
	}
	if _, state := peer("4.1.10-peer-removed-and-shutdown", "127.0.41.3:7000"); state.Status != StatusRemoved ||
		state.StatusExpires.Year() < 2000 {
		t.Errorf("removed peer: %+v", state)
	}
	if view, state := peer("4.1.10-peer-removed-and-shutdown", "127.0.41.2:7000"); state.Status != StatusShutdown ||
		state.Alive || view.HostIDs[state.Endpoint] != state.HostID {
		t.Errorf("peer that was stopped: %+v, members %v", state, view.HostIDs)
	}
}

// tamper replaces text in a recorded answer.
func tamper(t *testing.T, path, old, with string) *Node {
	t.Helper()
	inner := replayed(t, path)
	return answering(t, func(request json.RawMessage) json.RawMessage {
		answers, err := inner.jmx.Do(context.Background(),
			append(append([]jolokia.Request{}, stateRequests...), ringRequests...)...)
		if err != nil {
			t.Fatal(err)
		}
		body := "["
		for i, answer := range answers {
			if i > 0 {
				body += ","
			}
			var value bytes.Buffer
			if err := json.Compact(&value, answer.Value); err != nil {
				t.Fatal(err)
			}
			body += `{"status":200,"value":` + value.String() + `}`
		}
		changed := strings.ReplaceAll(body+"]", old, with)
		if changed == body+"]" {
			t.Fatalf("%q is not in the recording", old)
		}
		return json.RawMessage(changed)
	})
}

// TestUnreadableRingLeavesTheState shows that what a peer gossips cannot hide a node's own state.
func TestUnreadableRingLeavesTheState(t *testing.T) {
	path := filepath.Join("testdata", "5.0.6-normal.json")
	for name, change := range map[string][2]string{
		"gossip of another form": {`RELEASE_VERSION:5:5.0.6\n`, `RELEASE_VERSION:5:5.0.6\nEVIL\n`},
		"endpoint":               {`"LiveNodesWithPort":["`, `"LiveNodesWithPort":["x`},
		"partitioner":            {`Murmur3Partitioner`, `RandomPartitioner`},
		"type of an attribute":   {`"HintsInProgress":0`, `"HintsInProgress":"none"`},
	} {
		view, err := tamper(t, path, change[0], change[1]).View(context.Background())
		if err == nil || view.Mode != ModeNormal || view.HostID == "" || view.HostIDs != nil {
			t.Errorf("%s: error %v, view %+v", name, err, view)
		}
	}
	if view, err := tamper(t, path, `"OperationMode":"NORMAL"`,
		`"OperationMode":null`).View(context.Background()); !errors.Is(err, jolokia.ErrProtocol) {
		t.Errorf("without a mode: error %v, view %+v", err, view)
	}
}

func TestStateAsksTwoRequests(t *testing.T) {
	node, requests := scripted(
		t, `[{"status":200,"value":{"OperationMode":"NORMAL"}},{"status":404,"error":"javax.management.AttributeNotFoundException : No such attribute: BootstrapState"}]`,
	)
	state, err := node.State(context.Background())
	if err != nil || state.Mode != ModeNormal || state.Bootstrap != nil {
		t.Errorf("state %+v, error %v", state, err)
	}
	if strings.Contains((*requests)[0], "AllEndpointStates") {
		t.Errorf("the state was asked with the ring: %s", (*requests)[0])
	}
}

// TestPlacesThatGossipDoesNotSay: members that a node knows from its disk alone are where its
// snitch says. It is not asked about the node itself, nor about one that is no member, and what it
// does not know either is nowhere.
func TestPlacesThatGossipDoesNotSay(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "5.0.6-normal.json"))
	if err != nil {
		t.Fatal(err)
	}
	var recorded exchange
	if err := json.Unmarshal(data, &recorded); err != nil {
		t.Fatal(err)
	}
	silent := regexp.MustCompile(`\\n  (DC|RACK):[0-9]+:[a-z0-9]+`).ReplaceAll(recorded.Response, nil)
	node, requests := scripted(t, string(silent),
		`[{"status":200,"value":"dc1"},{"status":200,"value":"r3"},{"status":200,"value":"UNKNOWN_DC"},{"status":200,"value":"UNKNOWN_RACK"},`+
			`{"status":200,"value":"dc2"},{"status":200,"value":"r1"}]`)
	view, err := node.View(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	want := map[netip.AddrPort]Place{
		netip.MustParseAddrPort("127.0.50.3:7000"): {Datacenter: "dc1", Rack: "r3"},
		netip.MustParseAddrPort("127.0.50.5:7000"): {Datacenter: "dc2", Rack: "r1"},
	}
	if !maps.Equal(view.Remembered, want) {
		t.Errorf("remembered are %v, want %v", view.Remembered, want)
	}
	var asked []struct {
		MBean, Operation string
		Arguments        []string
	}
	if err := json.Unmarshal([]byte((*requests)[1]), &asked); err != nil {
		t.Fatal(err)
	}
	for i, address := range []string{"127.0.50.3", "127.0.50.4", "127.0.50.5"} {
		for j, operation := range []string{"getDatacenter(java.lang.String)", "getRack(java.lang.String)"} {
			if got := asked[2*i+j]; got.MBean != "org.apache.cassandra.db:type=EndpointSnitchInfo" ||
				got.Operation != operation || !slices.Equal(got.Arguments, []string{address}) {
				t.Errorf("request %d is %+v, want %s of %s", 2*i+j, got, operation, address)
			}
		}
	}
	if len(asked) != 6 {
		t.Errorf("%d requests, want 6", len(asked))
	}
}
