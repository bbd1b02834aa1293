package nodeview

import (
	"context"
	"net/netip"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestParseGossip(t *testing.T) {
	const text = "/10.0.0.2:7000\n  generation:1795216644\n  heartbeat:71\n  STATUS:34:LEAVING,1\n  " +
		"STATUS_WITH_PORT:33:BOOT_REPLACE,10.0.0.9:7000\n  LOAD:20:1.2E7\n  SCHEMA:32:d03783d7\n  DC:12:dc1\n  " +
		"RACK:14:r2\n  RELEASE_VERSION:5:5.0.6\n  HOST_ID:2:6cc2a40b\n  RPC_READY:44:true\n  " +
		"INTERNAL_ADDRESS_AND_PORT:8:10.0.0.2:7000\n  NATIVE_ADDRESS_AND_PORT:3:10.0.0.2:9042\n  " +
		"X_77_PADDING:9:what, is: this\n  TOKENS:37:<hidden>\nname.of.host/[2001:db8::1]:7000\n  generation:0\n  " +
		"heartbeat:0\n  STATUS_WITH_PORT:5:removed,b9ce8d4f,1795476414048\n  TOKENS: not present\n"
	states, err := ParseGossip(text)
	if err != nil {
		t.Fatal(err)
	}
	want := []GossipState{
		{
			Endpoint: netip.MustParseAddrPort("10.0.0.2:7000"), Generation: 1795216644, Heartbeat: 71,
			Status: StatusBootstrappingToReplace, StatusArguments: []string{"10.0.0.9:7000"},
			Datacenter: "dc1", Rack: "r2", HostID: "6cc2a40b", ReleaseVersion: "5.0.6", SchemaVersion: "d03783d7",
			LoadBytes:            12_000_000,
			InternalAddress:      netip.MustParseAddrPort("10.0.0.2:7000"),
			NativeAddress:        netip.MustParseAddrPort("10.0.0.2:9042"),
			NativeTransportReady: true, HasTokens: true,
		},
		{
			Endpoint: netip.MustParseAddrPort("[2001:db8::1]:7000"), Status: StatusRemoved,
			StatusArguments: []string{"b9ce8d4f", "1795476414048"}, StatusExpires: time.UnixMilli(1795476414048).UTC(),
		},
	}
	if !reflect.DeepEqual(states, want) {
		t.Errorf("got  %+v\nwant %+v", states, want)
	}
	if states, err := ParseGossip(""); err != nil || len(states) != 0 {
		t.Errorf("no gossip: %v, error %v", states, err)
	}
}

func TestParseGossipRefusesHalfEntries(t *testing.T) {
	const head = "/10.0.0.1:7000\n  generation:1\n  heartbeat:2\n"
	for name, text := range map[string]string{
		"state before an endpoint": "  generation:1\n",
		"no generation":            "/10.0.0.1:7000\n  heartbeat:2\n",
		"no heartbeat":             "/10.0.0.1:7000\n  generation:1\n",
		"generation of text":       "/10.0.0.1:7000\n  generation:x\n  heartbeat:2\n",
		"endpoint without a port":  "/10.0.0.1\n  generation:1\n  heartbeat:2\n",
		"endpoint twice":           head + head,
		"empty line":               head + "\n",
		"line of another form":     head + "  EVIL\n",
		"no version":               head + "  DC:dc1\n",
		"version of text":          head + "  DC:x:dc1\n",
		"state twice":              head + "  DC:1:dc1\n  DC:2:dc2\n",
		"load of text":             head + "  LOAD:1:much\n",
		"load that is no number":   head + "  LOAD:1:NaN\n",
		"address of text":          head + "  NATIVE_ADDRESS_AND_PORT:1:here\n",
		"left without expiry":      head + "  STATUS_WITH_PORT:1:LEFT,1\n",
		"expiry of text":           head + "  STATUS_WITH_PORT:1:LEFT,1,soon\n",
	} {
		if states, err := ParseGossip(text); err == nil || states != nil {
			t.Errorf("%s: states %v, error %v", name, states, err)
		}
	}
}

// FuzzParseGossip holds the parser to its order, and to take for one endpoint no line of another.
func FuzzParseGossip(f *testing.F) {
	for _, path := range recordings(f, "*.json") {
		if strings.HasSuffix(path, "-no-beans.json") {
			continue
		}
		view, err := replayed(f, path).View(context.Background())
		if err != nil {
			f.Fatalf("%s: %v", filepath.Base(path), err)
		}
		f.Add(rendered(view.Gossip))
	}
	f.Add("/10.0.0.1:7000\n  generation:1\n  heartbeat:2\n  STATUS:1:LEFT,1,2\n  TOKENS: not present\n")
	f.Fuzz(func(t *testing.T, text string) {
		states, err := ParseGossip(text)
		if err != nil {
			return
		}
		for i, state := range states {
			if !state.Endpoint.IsValid() || i > 0 && states[i-1].Endpoint.Compare(state.Endpoint) >= 0 {
				t.Fatalf("endpoints are not valid, in order and once each: %v", states)
			}
		}
		again, err := ParseGossip(rendered(states))
		if err != nil {
			t.Fatalf("what was parsed, printed again, is refused: %v", err)
		}
		for i := range states {
			// Liveness is not in the text, and an address that prints in several ways is one.
			if !reflect.DeepEqual(states[i], again[i]) {
				t.Fatalf("parsed again:\n%+v\nwant\n%+v", again[i], states[i])
			}
		}
	})
}
