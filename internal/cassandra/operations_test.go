package cassandra

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/jolokia"
)

const (
	answerNull = `[{"status":200,"value":null}]`
	answerZero = `[{"status":200,"value":0}]`
	refused    = `[{"status":500,"error_type":"java.lang.IllegalStateException","error":"java.lang.IllegalStateException : Node is still rebuilding. Check nodetool netstats."}]`
	taken      = `[{"status":500,"error_type":"java.io.IOException","error":"java.io.IOException : Snapshot t already exists."}]`
)

// TestOperationsOnTheWire holds each operation to the bean, signature and arguments that Cassandra
// 4.1 and 5.0 have.
func TestOperationsOnTheWire(t *testing.T) {
	ctx := context.Background()
	ss := `"mbean":"org.apache.cassandra.db:type=StorageService"`
	for name, c := range map[string]struct {
		answer string
		act    func(*Node) error
		want   string
	}{
		"stop native transport": {answerNull, func(n *Node) error { return n.StopNativeTransport(ctx) },
			`[{"type":"exec",` + ss + `,"operation":"stopNativeTransport()"}]`},
		"start native transport": {answerNull, func(n *Node) error { return n.StartNativeTransport(ctx) },
			`[{"type":"exec",` + ss + `,"operation":"startNativeTransport()"}]`},
		"drain": {answerNull, func(n *Node) error { return n.Drain(ctx) },
			`[{"type":"exec",` + ss + `,"operation":"drain()"}]`},
		"assassinate": {answerNull, func(n *Node) error { return n.Assassinate(ctx, "10.0.0.7") },
			`[{"type":"exec","mbean":"org.apache.cassandra.net:type=Gossiper","operation":"assassinateEndpoint(java.lang.String)","arguments":["10.0.0.7"]}]`},
		"decommission": {answerNull, func(n *Node) error { return n.Decommission(ctx, false) },
			`[{"type":"exec",` + ss + `,"operation":"decommission(boolean)","arguments":[false]}]`},
		"remove a node": {answerNull, func(n *Node) error { return n.RemoveNode(ctx, "x") },
			`[{"type":"exec",` + ss + `,"operation":"removeNode(java.lang.String)","arguments":["x"]}]`},
		"rebuild everything": {answerNull, func(n *Node) error { return n.Rebuild(ctx, "dc1", "") },
			`[{"type":"exec",` + ss + `,"operation":"rebuild(java.lang.String)","arguments":["dc1"]}]`},
		"rebuild one keyspace": {answerNull, func(n *Node) error { return n.Rebuild(ctx, "dc1", "shop") },
			`[{"type":"exec",` + ss + `,"operation":"rebuild(java.lang.String,java.lang.String,java.lang.String,java.lang.String)","arguments":["dc1","shop",null,null]}]`},
		"cleanup": {answerZero, func(n *Node) error { return n.Cleanup(ctx, 2, "shop") },
			`[{"type":"exec",` + ss + `,"operation":"forceKeyspaceCleanup(int,java.lang.String,[Ljava.lang.String;)","arguments":[2,"shop",[]]}]`},
		"upgrade": {answerZero, func(n *Node) error { return n.UpgradeSSTables(ctx, 2, "shop") },
			`[{"type":"exec",` + ss + `,"operation":"upgradeSSTables(java.lang.String,boolean,long,int,[Ljava.lang.String;)","arguments":["shop",true,9223372036854775807,2,[]]}]`},
		"snapshot": {answerNull, func(n *Node) error { return n.TakeSnapshot(ctx, "t", 0, "system") },
			`[{"type":"exec",` + ss + `,"operation":"takeSnapshot(java.lang.String,java.util.Map,[Ljava.lang.String;)","arguments":["t",{},["system"]]}]`},
		"snapshot of tables": {answerNull, func(n *Node) error {
			return n.TakeSnapshot(ctx, "t", 90*time.Minute, "shop", "a", "b")
		},
			`[{"type":"exec",` + ss + `,"operation":"takeSnapshot(java.lang.String,java.util.Map,[Ljava.lang.String;)","arguments":["t",{"ttl":"5400s"},["shop.a","shop.b"]]}]`},
		"compact": {answerNull, func(n *Node) error { return n.Compact(ctx, true, "shop") },
			`[{"type":"exec",` + ss + `,"operation":"forceKeyspaceCompaction(boolean,java.lang.String,[Ljava.lang.String;)","arguments":[true,"shop",[]]}]`},
		"collect garbage": {answerZero, func(n *Node) error { return n.GarbageCollect(ctx, 2, "shop", "a") },
			`[{"type":"exec",` + ss + `,"operation":"garbageCollect(java.lang.String,int,java.lang.String,[Ljava.lang.String;)","arguments":["ROW",2,"shop",["a"]]}]`},
		"scrub": {answerZero, func(n *Node) error { return n.Scrub(ctx, 2, "shop") },
			`[{"type":"exec",` + ss + `,"operation":"scrub(boolean,boolean,boolean,boolean,int,java.lang.String,[Ljava.lang.String;)","arguments":[false,false,true,false,2,"shop",[]]}]`},
		"verify": {answerZero, func(n *Node) error { return n.Verify(ctx, "shop") },
			`[{"type":"exec",` + ss + `,"operation":"verify(boolean,boolean,boolean,boolean,boolean,boolean,java.lang.String,[Ljava.lang.String;)","arguments":[false,false,false,false,false,false,"shop",[]]}]`},
		"stop repairs": {answerNull, func(n *Node) error { return n.StopRepairs(ctx) },
			`[{"type":"exec",` + ss + `,"operation":"forceTerminateAllRepairSessions()"}]`},
		"repair of tables": {answerZero, func(n *Node) error {
			_, err := n.StartRepair(ctx, "shop", RepairOptions{Tables: []string{"a", "b"}})
			return err
		},
			`[{"type":"exec",` + ss + `,"operation":"repairAsync(java.lang.String,java.util.Map)","arguments":["shop",{"parallelism":"parallel","primaryRange":"false",` +
				`"incremental":"false","jobThreads":"1","trace":"false","ignoreUnreplicatedKeyspaces":"true","columnFamilies":"a,b"}]}]`},
		"load new SSTables": {answerNull, func(n *Node) error { return n.LoadNewSSTables(ctx, "shop", "a") },
			`[{"type":"exec",` + ss + `,"operation":"loadNewSSTables(java.lang.String,java.lang.String)","arguments":["shop","a"]}]`},
		"SSTables for a key": {`[{"status":200,"value":["/a/nb-1-big-Data.db"]}]`, func(n *Node) error {
			paths, err := n.SSTablesForKey(ctx, "shop", "a", "x")
			if err == nil && (len(paths) != 1 || paths[0] != "/a/nb-1-big-Data.db") {
				err = errors.New(strings.Join(paths, ", "))
			}
			return err
		},
			`[{"type":"exec","mbean":"org.apache.cassandra.db:type=Tables,keyspace=shop,table=a","operation":"getSSTablesForKey(java.lang.String)","arguments":["x"]}]`},
		"no snapshot": {answerNull, func(n *Node) error { return n.ClearSnapshot(ctx, "t", "system") },
			`[{"type":"exec",` + ss + `,"operation":"clearSnapshot(java.lang.String,[Ljava.lang.String;)","arguments":["t",["system"]]}]`},
		"cleanup of tables": {answerZero, func(n *Node) error { return n.Cleanup(ctx, 0, "shop", "orders") },
			`[{"type":"exec",` + ss + `,"operation":"forceKeyspaceCleanup(int,java.lang.String,[Ljava.lang.String;)","arguments":[0,"shop",["orders"]]}]`},
		"full repair": {answerZero, func(n *Node) error {
			_, err := n.StartRepair(ctx, "shop", RepairOptions{})
			return err
		},
			`[{"type":"exec",` + ss + `,"operation":"repairAsync(java.lang.String,java.util.Map)","arguments":["shop",{"parallelism":"parallel","primaryRange":"false",` +
				`"incremental":"false","jobThreads":"1","trace":"false","ignoreUnreplicatedKeyspaces":"true"}]}]`},
		"limited repair": {answerZero, func(n *Node) error {
			_, err := n.StartRepair(ctx, "shop", RepairOptions{PrimaryRangesOnly: true, Incremental: true,
				Datacenters: []string{"dc1", "dc2"}})
			return err
		},
			`[{"type":"exec",` + ss + `,"operation":"repairAsync(java.lang.String,java.util.Map)","arguments":["shop",{"parallelism":"parallel","primaryRange":"true",` +
				`"incremental":"true","jobThreads":"1","trace":"false","ignoreUnreplicatedKeyspaces":"true","dataCenters":"dc1,dc2"}]}]`},
		"repair of some": {answerZero, func(n *Node) error {
			_, err := n.StartRepair(ctx, "shop", RepairOptions{Hosts: []string{"10.0.0.1", "10.0.0.2"}})
			return err
		},
			`[{"type":"exec",` + ss + `,"operation":"repairAsync(java.lang.String,java.util.Map)","arguments":["shop",{"parallelism":"parallel","primaryRange":"false",` +
				`"incremental":"false","jobThreads":"1","trace":"false","ignoreUnreplicatedKeyspaces":"true","hosts":"10.0.0.1,10.0.0.2"}]}]`},
	} {
		node, requests := scripted(t, c.answer)
		if err := c.act(node); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got, want any
		if err := errors.Join(json.Unmarshal([]byte((*requests)[0]), &got),
			json.Unmarshal([]byte(c.want), &want)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %s\nwant %s", name, (*requests)[0], c.want)
		}
		node, _ = scripted(t, refused)
		var refusal *jolokia.Error
		if err := c.act(node); !errors.As(err, &refusal) || refusal.Class != "java.lang.IllegalStateException" {
			t.Errorf("%s, refused: %v", name, err)
		}
	}
}

// What is unfinished is asked for in one request.
func TestUnfinished(t *testing.T) {
	node, requests := scripted(t, `[{"status":200,"value":3},{"status":200,"value":[{"SESSION_ID":"a"},{"SESSION_ID":"b"}]}]`)
	left, err := node.Unfinished(t.Context())
	if want := (facts.Unfinished{Batches: 3, IncrementalRepairs: 2}); err != nil || left != want {
		t.Errorf("%+v, error %v, want %+v", left, err, want)
	}
	if want := `[{"type":"exec","mbean":"org.apache.cassandra.db:type=BatchlogManager","operation":"countAllBatches()"},` +
		`{"type":"exec","mbean":"org.apache.cassandra.db:type=RepairService",` +
		`"operation":"getSessions(boolean,java.lang.String)","arguments":[false,""]}]`; len(*requests) != 1 ||
		(*requests)[0] != want {
		t.Errorf("asked %s, want %s", *requests, want)
	}
	node, _ = scripted(t, `[{"status":200,"value":3},`+refused[1:])
	var refusal *jolokia.Error
	if _, err := node.Unfinished(t.Context()); !errors.As(err, &refusal) {
		t.Errorf("refused: %v", err)
	}
}

func TestCleanupResults(t *testing.T) {
	for result, want := range map[string]string{"1": "aborted", "2": "could not be cancelled", "3": "unknown result 3",
		"null": ""} {
		node, _ := scripted(t, `[{"status":200,"value":`+result+`}]`)
		err := node.Cleanup(context.Background(), 1, "shop")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("result %s: error %v, want %q", result, err, want)
		}
	}
}

func TestRepairStatus(t *testing.T) {
	for answer, want := range map[string]RepairStatus{
		`null`: {State: RepairUnknown},
		`[]`:   {State: RepairUnknown},
		`["IN_PROGRESS","Repair session 1 finished"]`:   {RepairInProgress, []string{"Repair session 1 finished"}},
		`["COMPLETED","Repair completed successfully"]`: {RepairCompleted, []string{"Repair completed successfully"}},
		`["FAILED","Endpoint not alive: /10.0.0.1"]`:    {RepairFailed, []string{"Endpoint not alive: /10.0.0.1"}},
	} {
		node, _ := scripted(t, `[{"status":200,"value":`+answer+`}]`)
		status, err := node.RepairStatus(context.Background(), 7)
		if err != nil || status.State != want.State ||
			strings.Join(status.Messages, "|") != strings.Join(want.Messages, "|") {
			t.Errorf("%s: %+v, error %v; want %+v", answer, status, err, want)
		}
	}
	node, _ := scripted(t, `[{"status":200,"value":["PAUSED"]}]`)
	if status, err := node.RepairStatus(context.Background(), 7); !errors.Is(err, jolokia.ErrProtocol) {
		t.Errorf("unknown state: %+v, error %v", status, err)
	}
}

func TestWhatRunsOnANode(t *testing.T) {
	states := func(known ...string) string {
		for len(known) < commandsAtOnce {
			known = append(known, "null")
		}
		for i, state := range known {
			known[i] = `{"status":200,"value":` + state + `}`
		}
		return "[" + strings.Join(known, ",") + "]"
	}
	node, requests := scripted(t, states(`["COMPLETED"]`, "null", `["IN_PROGRESS"]`), states())
	running, err := node.RunningRepairs(context.Background(), 4)
	if err != nil || !reflect.DeepEqual(running, []int{7}) || !strings.Contains((*requests)[0], `"arguments":[5]`) {
		t.Errorf("repairs %v, error %v", running, err)
	}
	node, _ = scripted(t, `[{"status":200,"value":{"Compactions":[{"taskType":"Cleanup","keyspace":"shop"},`+
		`{"taskType":"Compaction","keyspace":"accounts"}]}}]`)
	if keyspaces, err := node.Compacting(context.Background(), CompactionCleanup); err != nil ||
		!reflect.DeepEqual(keyspaces, []string{"shop"}) {
		t.Errorf("cleanups %v, error %v", keyspaces, err)
	}
	node, _ = scripted(t, refused)
	if err := node.Rebuild(context.Background(), "dc1", "shop"); !errors.Is(err, ErrRebuilding) {
		t.Errorf("error %v", err)
	}
	node, _ = scripted(t, taken)
	if err := node.TakeSnapshot(context.Background(), "t", 0, "system"); !errors.Is(err, ErrSnapshotExists) {
		t.Errorf("error %v", err)
	}
}

// What runs is stopped by its id, on one keyspace alone.
func TestStopCompactions(t *testing.T) {
	const compactions = `[{"status":200,"value":{"Compactions":[{"taskType":"Cleanup","keyspace":"shop","compactionId":"a"},` +
		`{"taskType":"Cleanup","keyspace":"accounts","compactionId":"b"},{"taskType":"Validation","keyspace":"shop","compactionId":"c"}]}}]`
	node, requests := scripted(t, compactions, answerNull)
	if err := node.StopCompactions(t.Context(), "shop", CompactionCleanup); err != nil || len(*requests) != 2 ||
		!strings.Contains((*requests)[1], `"operation":"stopCompactionById(java.lang.String)","arguments":["a"]}]`) {
		t.Errorf("asked %v, error %v", *requests, err)
	}
	node, requests = scripted(t, compactions)
	if err := node.StopCompactions(t.Context(), "shop", CompactionScrub); err != nil || len(*requests) != 1 {
		t.Errorf("asked %v, error %v", *requests, err)
	}
	node, _ = scripted(t, compactions, refused)
	var refusal *jolokia.Error
	if err := node.StopCompactions(t.Context(), "shop", CompactionCleanup); !errors.As(err, &refusal) {
		t.Errorf("refused: %v", err)
	}
}

func TestInvalidateCaches(t *testing.T) {
	const ok = `{"status":200,"value":null}`
	node, requests := scripted(t, "["+ok+","+ok+","+ok+"]")
	if err := node.InvalidateCaches(t.Context()); err != nil || len(*requests) != 1 {
		t.Errorf("asked %v, error %v", *requests, err)
	}
	for _, cache := range []string{"Key", "Row", "Counter"} {
		if want := `"mbean":"org.apache.cassandra.db:type=Caches","operation":"invalidate` + cache + `Cache()"`; !strings.
			Contains((*requests)[0], want) {
			t.Errorf("asked %s, want %s", (*requests)[0], want)
		}
	}
	node, _ = scripted(t, "["+ok+","+ok+","+refused[1:])
	var refusal *jolokia.Error
	if err := node.InvalidateCaches(t.Context()); !errors.As(err, &refusal) {
		t.Errorf("refused: %v", err)
	}
}

func TestInvalidateAuthCaches(t *testing.T) {
	const ok = `{"status":200,"value":null}`
	const none = `{"status":404,"error_type":"javax.management.InstanceNotFoundException","error":"no bean"}`
	node, requests := scripted(t, "["+ok+","+none+","+ok+"]")
	if err := node.InvalidateAuthCaches(t.Context()); err != nil || len(*requests) != 1 {
		t.Errorf("asked %v, error %v", *requests, err)
	}
	for _, cache := range []string{"Credentials", "Roles", "Permissions"} {
		if want := `"mbean":"org.apache.cassandra.auth:type=` + cache + `Cache","operation":"invalidate()"`; !strings.
			Contains((*requests)[0], want) {
			t.Errorf("asked %s, want %s", (*requests)[0], want)
		}
	}
	node, _ = scripted(t, "["+ok+","+ok+","+refused[1:])
	var refusal *jolokia.Error
	if err := node.InvalidateAuthCaches(t.Context()); !errors.As(err, &refusal) {
		t.Errorf("refused: %v", err)
	}
}

func TestRebuildIndex(t *testing.T) {
	for built, wrong := range map[string]string{`["by_name","by_age"]`: "", `["by_age"]`: "by_name is not there"} {
		node, requests := scripted(t, answerNull, `[{"status":200,"value":{"BuiltIndexes":`+built+`}}]`)
		err := node.RebuildIndex(t.Context(), "shop", "users", []string{"by_name"})
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("of those built %s: %v", built, err)
		}
		if !strings.Contains((*requests)[0], `rebuildSecondaryIndex(java.lang.String,java.lang.String,[Ljava.lang.String;)`) ||
			!strings.Contains((*requests)[1], "type=Tables,keyspace=shop,table=users") {
			t.Errorf("asked %v", *requests)
		}
	}
}

func TestReloadSeeds(t *testing.T) {
	node, _ := scripted(t, `[{"status":200,"value":["/10.0.0.1:7000"]}]`)
	if err := node.ReloadSeeds(context.Background()); err != nil {
		t.Error(err)
	}
	node, _ = scripted(t, answerNull)
	if err := node.ReloadSeeds(context.Background()); !errors.Is(err, ErrSeedsNotLoaded) {
		t.Errorf("error %v; want ErrSeedsNotLoaded", err)
	}
}

func TestPendingRanges(t *testing.T) {
	node, _ := scripted(
		t, `[{"status":200,"value":{}},{"status":200,"value":{"[-5, 7]":["10.0.0.4:7000"],"[7, 9]":["10.0.0.4:7000","10.0.0.3:7000"]}}]`,
	)
	pending, err := node.PendingRanges(context.Background(), []string{"quiet", "moving"})
	if err != nil || pending != 2 {
		t.Errorf("%d ranges are pending, error %v; want 2", pending, err)
	}
}

// TestStreams uses an answer recorded from a node that bootstraps.
func TestStreams(t *testing.T) {
	const recorded = `[{"value":[2583493],"status":200,"timestamp":1795218406},{"value":[13402354],"status":200,"timestamp":1795218406},` +
		`{"value":[0],"status":200,"timestamp":1795218406},{"value":[0],"status":200,"timestamp":1795218406}]`
	node, _ := scripted(
		t, recorded, `[{"value":[1,2],"status":200},{"value":[3,4],"status":200},{"value":[5,6],"status":200},{"value":[7,8],"status":200}]`,
	)
	for _, want := range []facts.Transfer{
		{Plans: 1, Received: 2583493, ToReceive: 13402354},
		{Plans: 2, Received: 3, ToReceive: 7, Sent: 11, ToSend: 15},
	} {
		if streams, err := node.Streams(context.Background()); err != nil || streams != want {
			t.Errorf("streams %+v, error %v; want %+v", streams, err, want)
		}
	}
}

func TestSchema(t *testing.T) {
	const (
		keyspaces   = `[{"status":200,"value":{"SchemaVersion":"a","NonLocalStrategyKeyspaces":["shop","system_auth"]}}]`
		replication = `[{"status":200,"value":"NetworkTopologyStrategy {dc1=3}"},{"status":200,"value":"SimpleStrategy {replication_factor=1}"},{"status":200,"value":{"SchemaVersion":"VERSION"}}]`
	)
	same, other := strings.ReplaceAll(replication, "VERSION", "a"), strings.ReplaceAll(replication, "VERSION", "b")
	want := Schema{Version: "a", Keyspaces: []Keyspace{
		{"shop", PerDatacenter(map[string]int{"dc1": 3})},
		{"system_auth", Replication{SimpleStrategy, map[string]string{"replication_factor": "1"}}},
	}}
	for name, script := range map[string][]string{"at once": {keyspaces, same},
		"after a change came between": {keyspaces, other, keyspaces, same}} {
		node, _ := scripted(t, script...)
		if schema, err := node.Schema(context.Background()); err != nil || !reflect.DeepEqual(schema, want) {
			t.Errorf("%s: %+v, error %v; want %+v", name, schema, err, want)
		}
	}
	node, _ := scripted(t, keyspaces, other, keyspaces, other)
	if schema, err := node.Schema(context.Background()); !errors.Is(err, ErrSchemaChanging) {
		t.Errorf("a schema that keeps changing: %+v, error %v", schema, err)
	}
}

func TestAwaitSchemaAgreement(t *testing.T) {
	const (
		two  = `[{"status":200,"value":{"SchemaVersionsWithPort":{"a":["10.0.0.1:7000"],"b":["10.0.0.2:7000"]}}}]`
		one  = `[{"status":200,"value":{"SchemaVersionsWithPort":{"a":["10.0.0.1:7000","10.0.0.2:7000"],"UNREACHABLE":["10.0.0.3:7000"]}}}]`
		none = `[{"status":200,"value":{"SchemaVersionsWithPort":{"UNREACHABLE":["10.0.0.3:7000"]}}}]`
	)
	node, _ := scripted(t, two, one)
	if err := node.AwaitSchemaAgreement(context.Background()); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	node = answering(t, func(json.RawMessage) json.RawMessage { cancel(); return json.RawMessage(none) })
	if err := node.AwaitSchemaAgreement(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody answers: %v", err)
	}
}
