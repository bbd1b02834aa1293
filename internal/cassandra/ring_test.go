package cassandra

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/jolokia"
)

// recordings are what real nodes of 4.1 and 5.0 answered through a start, a join, a leave, a
// removal and a drain.
func recordings(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob("../../test/nodeview/testdata/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("recordings: %d found, error %v", len(paths), err)
	}
	return slices.DeleteFunc(paths, func(path string) bool { return strings.HasSuffix(path, ".golden.json") })
}

// recorded is a node that answers reads with what one answered when it was recorded, after a change
// of the text.
func recorded(t testing.TB, path string, change func(string) string) *Node {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		changed := change(string(data))
		if changed == string(data) {
			t.Fatalf("the change changes nothing of %s", path)
		}
		data = []byte(changed)
	}
	type request struct {
		MBean     string   `json:"mbean"`
		Attribute []string `json:"attribute"`
	}
	var exchange struct {
		Request  []request
		Response []json.RawMessage
	}
	if err := json.Unmarshal(data, &exchange); err != nil {
		t.Fatal(err)
	}
	values, refusals := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	for i, r := range exchange.Request {
		var answer struct{ Value map[string]json.RawMessage }
		if err := json.Unmarshal(exchange.Response[i], &answer); err != nil || answer.Value == nil {
			for _, attribute := range r.Attribute {
				refusals[r.MBean+attribute] = exchange.Response[i]
			}
		}
		for attribute, value := range answer.Value {
			values[r.MBean+attribute] = value
		}
	}
	return answering(t, func(body json.RawMessage) json.RawMessage {
		var asked []request
		if err := json.Unmarshal(body, &asked); err != nil {
			t.Fatal(err)
		}
		var answers []any
		for _, r := range asked {
			value := map[string]json.RawMessage{}
			var refusal json.RawMessage
			for _, attribute := range r.Attribute {
				v, known := values[r.MBean+attribute]
				if value[attribute] = v; !known {
					if refusal = refusals[r.MBean+attribute]; refusal == nil {
						t.Fatalf("%s of %s is not in %s", attribute, r.MBean, path)
					}
				}
			}
			if refusal != nil {
				answers = append(answers, refusal)
				continue
			}
			answers = append(answers, map[string]any{"status": 200, "value": value})
		}
		text, err := json.Marshal(answers)
		if err != nil {
			t.Fatal(err)
		}
		return text
	})
}

// TestRecordedRings holds how a ring is read to what it looked like.
func TestRecordedRings(t *testing.T) {
	for _, path := range recordings(t) {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		t.Run(name, func(t *testing.T) {
			ring, _, err := recorded(t, path, nil).Ring(context.Background())
			if strings.HasSuffix(name, "-no-beans") {
				if !errors.Is(err, ErrStarting) || !errors.Is(err, jolokia.ErrInstanceNotFound) {
					t.Fatalf("error %v, want ErrStarting", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", "ring", name+".golden.json"), ring)
		})
	}
}

// TestRecordedModes says outright what the golden files would let pass after an update.
func TestRecordedModes(t *testing.T) {
	for name, want := range map[string]struct {
		mode   facts.Mode
		status facts.GossipStatus
		member bool
		cql    bool
		moving bool
	}{
		"4.1.10-starting":      {facts.ModeStarting, "", false, false, false},
		"4.1.10-joining":       {facts.ModeJoining, facts.StatusBootstrap, true, false, true},
		"4.1.10-normal":        {facts.ModeNormal, facts.StatusNormal, true, true, false},
		"4.1.10-drained":       {facts.ModeDrained, facts.StatusShutdown, true, false, false},
		"5.0.6-starting":       {facts.ModeStarting, "", false, false, false},
		"5.0.6-joining":        {facts.ModeJoining, facts.StatusBootstrap, true, false, true},
		"5.0.6-normal":         {facts.ModeNormal, facts.StatusNormal, true, true, false},
		"5.0.6-leaving":        {facts.ModeLeaving, facts.StatusLeft, false, true, false},
		"5.0.6-decommissioned": {facts.ModeDecommissioned, facts.StatusLeft, false, false, false},
		"5.0.6-drained":        {facts.ModeDrained, facts.StatusShutdown, true, false, false},
		"5.0.6-peer-leaving":   {facts.ModeNormal, facts.StatusNormal, true, true, true},
	} {
		path := filepath.Join("../../test/nodeview/testdata", name+".json")
		ring, moving, err := recorded(t, path, nil).Ring(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		own, _ := ring.ByHostID(ring.HostID)
		if ring.Mode != want.mode || own.Status != want.status || own.Member() != want.member ||
			ring.NativeRunning != want.cql || moving != want.moving {
			t.Errorf("%s: mode %s, itself %+v, CQL %v, moving %v; want %+v", name, ring.Mode, own, ring.NativeRunning,
				moving, want)
		}
	}
}

// TestUnreadableRings: what is read in part is not taken for a ring.
func TestUnreadableRings(t *testing.T) {
	const path = "../../test/nodeview/testdata/5.0.6-normal.json"
	for name, change := range map[string][2]string{
		"gossip of another form": {`RELEASE_VERSION:5:5.0.6\n`, `RELEASE_VERSION:5:5.0.6\nEVIL\n`},
		"endpoint":               {`"SimpleStatesWithPort": {`, `"SimpleStatesWithPort": {"x": "UP",`},
		"partitioner":            {`Murmur3Partitioner`, `RandomPartitioner`},
		"no mode":                {`"OperationMode": "NORMAL"`, `"OperationMode": null`},
		"type of an attribute":   {`"GossipRunning": true`, `"GossipRunning": "yes"`},
	} {
		node := recorded(t, path, func(text string) string { return strings.ReplaceAll(text, change[0], change[1]) })
		if ring, _, err := node.Ring(context.Background()); err == nil || ring != nil {
			t.Errorf("%s: error %v, ring %+v", name, err, ring)
		}
	}
}

// TestPlacesThatGossipDoesNotSay: members that a node knows from its disk alone are where its
// snitch says. It is not asked about the node itself, nor about one that is no member, and what it
// does not know either is nowhere.
func TestPlacesThatGossipDoesNotSay(t *testing.T) {
	silent := regexp.MustCompile(`\\n  (DC|RACK):[0-9]+:[a-z0-9]+`)
	inner := recorded(t, "../../test/nodeview/testdata/5.0.6-normal.json",
		func(text string) string { return silent.ReplaceAllString(text, "") })
	first, err := inner.jmx.Do(context.Background(), ringRequests...)
	if err != nil {
		t.Fatal(err)
	}
	node, requests := scripted(t, `[{"status":200,"value":`+string(first[0].Value)+`},{"status":200,"value":`+
		string(first[1].Value)+`}]`,
		`[{"status":200,"value":"dc1"},{"status":200,"value":"r3"},{"status":200,"value":"UNKNOWN_DC"},{"status":200,"value":"UNKNOWN_RACK"},`+
			`{"status":200,"value":"dc2"},{"status":200,"value":"r1"}]`)
	ring, _, err := node.Ring(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range ring.Endpoints {
		if e.Datacenter+e.Rack != "" {
			got[e.Address] = e.Datacenter + "/" + e.Rack
		}
	}
	if want := map[string]string{"127.0.50.3": "dc1/r3", "127.0.50.5": "dc2/r1"}; !reflect.DeepEqual(got, want) {
		t.Errorf("located are %v, want %v", got, want)
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

// TestMembersThatGossipDoesNotKnow are put together of what the node has in its memory of the ring.
func TestMembersThatGossipDoesNotKnow(t *testing.T) {
	node, _ := scripted(t, `[{"status":200,"value":{"OperationMode":"NORMAL","LocalHostId":"A","PartitionerName":"`+
		partitioner+`","EndpointWithPortToHostId":{"10.0.0.1:7000":"A","10.0.0.2:7000":"B"},`+
		`"TokenToEndpointWithPortMap":{"5":"10.0.0.1:7000","-5":"10.0.0.1:7000","1":"10.0.0.2:7000"}}},`+
		`{"status":200,"value":{"AllEndpointStatesWithPort":"/10.0.0.1:7000\n  generation:1\n  heartbeat:2\n  DC:3:dc1\n`+
		`  LOAD:4:7.0\n/10.0.0.3:7000\n  generation:1\n  heartbeat:2\n  STATUS_WITH_PORT:3:shutdown,true\n",`+
		`"SimpleStatesWithPort":{"/10.0.0.1:7000":"UP"}}}]`,
		`[{"status":200,"value":"dc1"},{"status":200,"value":"r2"}]`)
	ring, moving, err := node.Ring(context.Background())
	want := []facts.Endpoint{
		{Address: "10.0.0.1", HostID: "A", Datacenter: "dc1", Live: true, Load: 7, Tokens: []int64{-5, 5}},
		{Address: "10.0.0.2", HostID: "B", Datacenter: "dc1", Rack: "r2", Tokens: []int64{1}},
		{Address: "10.0.0.3", Status: facts.StatusShutdown},
	}
	if err != nil || moving || !reflect.DeepEqual(ring.Endpoints, want) {
		t.Errorf("%+v, moving %v, error %v", ring, moving, err)
	}
}

func TestGossipRefusesHalfEntries(t *testing.T) {
	const head = "/10.0.0.1:7000\n  generation:1\n  heartbeat:2\n"
	read := func(text string) error {
		entries, err := parseGossip(text)
		for _, e := range entries {
			if _, failed := e.facts(); failed != nil {
				return failed
			}
		}
		return err
	}
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
	} {
		if read(text) == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, text := range []string{"", head, head + "  X_77_PADDING:9:what, is: this\n  TOKENS: not present\n"} {
		if err := read(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzParseGossip holds the parser to its order, and to take for one endpoint no line of another.
func FuzzParseGossip(f *testing.F) {
	f.Add("/10.0.0.1:7000\n  generation:1\n  heartbeat:2\n  STATUS:1:LEFT,1,2\n  TOKENS: not present\n")
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := parseGossip(text)
		if err != nil {
			return
		}
		for i, e := range entries {
			if !e.endpoint.IsValid() || i > 0 && entries[i-1].endpoint.Compare(e.endpoint) >= 0 {
				t.Fatalf("endpoints are not valid, in order and once each: %v", entries)
			}
			for name, value := range e.values {
				if !strings.Contains(text, name) || !strings.Contains(text, value) {
					t.Fatalf("%s is %q, which is not in the text", name, value)
				}
			}
		}
	})
}
