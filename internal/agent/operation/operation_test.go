package operation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/node/operation"
	"helenus.io/helenus/internal/jolokia"
)

// fake is a node on which an operation runs. What is not faked of the JVM must not be asked.
type fake struct {
	JVM

	ring  *facts.Ring
	there []string
	free  int64
	// fails has errors of calls. Before a call and before a wait, each is told.
	fails  map[string]error
	before func(what string)
	states []cassandra.RepairState
	calls  []string
	said   []string
	// noted is what the next agent would be told, and from what this one is; repairs and compacting
	// are what runs, look by look.
	noted      []operation.Handle
	from       *operation.Handle
	cancelled  bool
	repairs    [][]int
	compacting [][]string
	// found is where helenus_root is, look by look, and secrets are those of the namespace.
	found   [][]string
	secrets map[string]map[string][]byte
}

func newFake() *fake {
	return &fake{fails: map[string]error{}, free: 9 << 20, before: func(string) {}, secrets: map[string]map[string][]byte{
		"orders-roles": {"helenus_root": []byte("r"), "helenus_operator": []byte("o"),
			"helenus_root.hash": []byte("$2a$04$pkMqjEHLnZ9Wlyq.nDqNau9WSVqIBuZTPfy4S3g4tJhi0zbpb.d9W")},
		"people": {"username": []byte("Owner"), "password": []byte("a"), "password.old": []byte("a0")},
	}, ring: &facts.Ring{
		HostID: "host-a",
		Endpoints: []facts.Endpoint{{HostID: "host-a", Address: "10.0.0.1", Datacenter: "dc1",
			Status: facts.StatusNormal, Tokens: []int64{1}}},
		Keyspaces: map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}",
			"accounts": "NetworkTopologyStrategy {dc1=3}"},
	}}
}

func (f *fake) run(t *testing.T, o v1alpha1.OperationType, arguments *v1alpha1.OperationArguments) (string, error) {
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	return Run(ctx, &Host{
		Now:     func() time.Time { return time.Unix(2e9, 0) },
		JVM:     f,
		Ring:    func(context.Context) (*facts.Ring, error) { return f.ring, nil },
		NodesAt: func(context.Context, string) []string { return f.there },
		Room: func(string) (map[string][]int64, int64, error) {
			return map[string][]int64{"carts": {5 << 20, 1 << 20}, "users": {4 << 20}}, f.free, nil
		},
		PlaceSSTable: func(keyspace, table, name string, files map[string][]byte) error {
			return f.call("place %s of %s.%s, %d files", name, keyspace, table, len(files))
		},
		Secret: func(_ context.Context, name string) (map[string][]byte, error) {
			if f.secrets[name] == nil {
				return nil, fmt.Errorf("no Secret %s", name)
			}
			return f.secrets[name], nil
		},
		Record: &v1alpha1.CassandraNode{Spec: v1alpha1.CassandraNodeSpec{
			Cluster: v1alpha1.ClusterReference{Name: "orders"}}},
		Cancelled: func() bool { return f.cancelled },
		Note: func(h operation.Handle) error {
			f.noted = append(f.noted, h)
			return f.fails["note"]
		},
		Say: func(finished, all int, message string) {
			f.said = append(f.said, fmt.Sprintf("%d/%d %s", finished, all, message))
		},
		Wait: func(ctx context.Context, _ time.Duration) error {
			f.before("wait")
			return ctx.Err()
		},
	}, &v1alpha1.OperationIntent{Type: o, Arguments: arguments}, f.from)
}

func (f *fake) call(format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	f.before(what)
	f.calls = append(f.calls, what)
	return f.fails[what]
}

func (f *fake) AlterSystemKeyspaces(_ context.Context, least map[string]int32) (string, error) {
	return "altered", f.call("alter system ones to %v", least)
}

func (f *fake) AlterKeyspaces(_ context.Context, least map[string]map[string]int32) (string, error) {
	return "altered", f.call("alter to %v", least)
}

func (f *fake) SetSystemKeyspaces(_ context.Context, exact map[string]int32) (string, error) {
	return "altered", f.call("set system ones to %v", exact)
}

func (f *fake) SetKeyspaces(_ context.Context, exact map[string]map[string]int32) (string, error) {
	return "altered", f.call("set to %v", exact)
}

func (f *fake) RemoveNode(_ context.Context, hostID string) error { return f.call("remove %s", hostID) }

func (f *fake) Decommission(_ context.Context, force bool) error {
	if force {
		return f.call("decommission by force")
	}
	return f.call("decommission")
}

func (f *fake) ForgetStreamedRanges(_ context.Context, keyspace string) error {
	return f.call("forget what was streamed of %s", keyspace)
}

func (f *fake) Assassinate(_ context.Context, endpoint string) error {
	return f.call("assassinate %s", endpoint)
}

func (f *fake) Cleanup(_ context.Context, jobs int, keyspace string, _ ...string) error {
	return f.call("cleanup %s by %d", keyspace, jobs)
}

func (f *fake) UpgradeSSTables(_ context.Context, jobs int, keyspace string, _ ...string) error {
	return f.call("upgrade %s by %d", keyspace, jobs)
}

func (f *fake) Compact(_ context.Context, split bool, keyspace string, tables ...string) error {
	return f.call("compact %s %v split %v", keyspace, tables, split)
}

func (f *fake) GarbageCollect(_ context.Context, jobs int, keyspace string, _ ...string) error {
	return f.call("collect %s by %d", keyspace, jobs)
}

func (f *fake) Scrub(_ context.Context, jobs int, keyspace string, _ ...string) error {
	return f.call("scrub %s by %d", keyspace, jobs)
}

func (f *fake) Verify(_ context.Context, keyspace string, _ ...string) error {
	return f.call("verify %s", keyspace)
}

func (f *fake) InvalidateCaches(context.Context) error { return f.call("invalidate") }

func (f *fake) RebuildIndex(_ context.Context, keyspace, table string, indexes []string) error {
	return f.call("index %s.%s %v", keyspace, table, indexes)
}

func (f *fake) StopCompactions(_ context.Context, keyspace string, kinds ...cassandra.Compaction) error {
	return f.call("stop %v on %s", kinds, keyspace)
}

func (f *fake) StopRepairs(context.Context) error { return f.call("stop repairs") }

func (f *fake) Flush(_ context.Context, keyspace string, _ ...string) error {
	return f.call("flush %s", keyspace)
}

func (f *fake) TakeSnapshot(_ context.Context, tag string, ttl time.Duration, keyspace string,
	tables ...string) error {
	if ttl > 0 || len(tables) > 0 {
		return f.call("snapshot %s of %s %v for %s", tag, keyspace, tables, ttl)
	}
	return f.call("snapshot %s of %s", tag, keyspace)
}

func (f *fake) ClearSnapshot(_ context.Context, tag, keyspace string) error {
	return f.call("clear %s of %s", tag, keyspace)
}

func (f *fake) Rebuild(_ context.Context, source, keyspace string) error {
	return f.call("rebuild %s from %s", keyspace, source)
}

func (f *fake) StartRepair(_ context.Context, keyspace string, o cassandra.RepairOptions) (int, error) {
	command := 7
	if len(f.states) == 0 {
		command = 0
	}
	if len(o.Hosts) > 0 {
		return command, f.call("repair %s among %v", keyspace, o.Hosts)
	}
	return command, f.call("repair %s incremental %v primary %v in %v", keyspace, o.Incremental,
		o.PrimaryRangesOnly, o.Datacenters)
}

func (f *fake) RepairStatus(_ context.Context, command int) (cassandra.RepairStatus, error) {
	s := cassandra.RepairStatus{State: f.states[0], Messages: []string{"Endpoint not alive"}}
	f.states = f.states[1:]
	return s, f.call("status of %d", command)
}

func (f *fake) RunningRepairs(_ context.Context, after int) ([]int, error) {
	running := f.repairs[0]
	f.repairs = f.repairs[1:]
	return running, f.call("which repairs after %d", after)
}

func (f *fake) Compacting(_ context.Context, c cassandra.Compaction) ([]string, error) {
	running := f.compacting[0]
	f.compacting = f.compacting[1:]
	return running, f.call("which %s", c)
}

func (f *fake) SSTablesForKey(_ context.Context, _, _, key string) ([]string, error) {
	found := f.found[0]
	f.found = f.found[1:]
	return found, f.call("where is %s", key)
}

func (f *fake) LoadNewSSTables(_ context.Context, keyspace, table string) error {
	return f.call("load %s.%s", keyspace, table)
}

func (f *fake) Truncate(_ context.Context, keyspace, table string) error {
	return f.call("truncate %s.%s", keyspace, table)
}

func (f *fake) SetRoles(_ context.Context, logins cassandra.Logins, least map[string]int32) (string, error) {
	return "set", f.call("set roles %v for %v", logins, least)
}

func (f *fake) SetPassword(_ context.Context, logins cassandra.Logins) (string, error) {
	return "set", f.call("set password %v", logins)
}

func (f *fake) KeepRoles(_ context.Context, superuser cassandra.Login, roles []cassandra.KeptRole) (string, error) {
	return "kept", f.call("keep %v as %v", roles, superuser)
}

func (f *fake) CheckRows(_ context.Context, superuser cassandra.Login, checks []v1alpha1.RowCheck) (string, error) {
	return "checked", f.call("check %q as %v", checks[0].Query, superuser)
}

func (f *fake) ProveLogin(_ context.Context, logins cassandra.Logins) error {
	return f.call("prove %v", logins)
}

func (f *fake) ProvePassword(_ context.Context, superuser cassandra.Login, old string) error {
	return f.call("prove %v, not %s", superuser, old)
}

func TestEveryTypeCanBeCarriedOut(t *testing.T) {
	var known []v1alpha1.OperationType
	for _, k := range operation.Kinds {
		known = append(known, k.Type)
	}
	slices.Sort(known)
	if carried := slices.Sorted(maps.Keys(table)); !slices.Equal(carried, known) {
		t.Errorf("carried out are %v, known to core are %v", carried, known)
	}
	if _, err := newFake().run(t, "Dance", nil); err == nil ||
		!strings.Contains(err.Error(), "operation Dance is not known") {
		t.Errorf("error %v", err)
	}
}

func TestOperations(t *testing.T) {
	const endpoint, hostID = "10.0.0.99", "host-x"
	down := func(change func(f *fake)) func(*fake) {
		return func(f *fake) {
			f.ring.Endpoints = append(f.ring.Endpoints, facts.Endpoint{Address: endpoint, HostID: hostID,
				Status: facts.StatusNormal, Tokens: []int64{2}})
			change(f)
		}
	}
	type arguments = v1alpha1.OperationArguments
	ended := func(states ...cassandra.RepairState) func(*fake) { return func(f *fake) { f.states = states } }
	stale := func(change func(f *fake, e *facts.Endpoint)) func(*fake) {
		return func(f *fake) {
			e := facts.Endpoint{Address: endpoint, HostID: "host-x", Status: facts.StatusBootstrap}
			change(f, &e)
			f.ring.Endpoints = append(f.ring.Endpoints, e)
		}
	}
	leaving := func(end facts.Mode) func(*fake) {
		return func(f *fake) { f.before = func(string) { f.ring.Mode = end } }
	}
	shop := arguments{Keyspaces: []string{"shop"}}
	const imports = "flush system_auth; where is helenus_root; " +
		"place nb-1000000000-big of system_auth.roles-5bc52802de2535edaeab188eecebb090, 8 files; " +
		"load system_auth.roles; where is helenus_root"
	for name, c := range map[string]struct {
		of        v1alpha1.OperationType
		arguments arguments
		change    func(*fake)
		calls     string
		want      string // or a part of the error
		fails     bool
	}{
		"import": {v1alpha1.OperationImportSuperuser, arguments{},
			func(f *fake) { f.found = [][]string{nil, {"nb-2-big-Data.db"}} }, imports, "imported role helenus_root",
			false},
		"import of what is there": {v1alpha1.OperationImportSuperuser, arguments{},
			func(f *fake) { f.found = [][]string{{"nb-2-big-Data.db"}} },
			"flush system_auth; where is helenus_root", "was there already", false},
		"import in place of what is there": {v1alpha1.OperationImportSuperuser,
			arguments{WrittenAt: &metav1.Time{}}, func(f *fake) {
				f.found = [][]string{{"nb-2-big-Data.db"}, {"nb-2-big-Data.db", "nb-3-big-Data.db"}}
			}, imports, "imported role helenus_root", false},
		"import in place of it that is passed over": {v1alpha1.OperationImportSuperuser,
			arguments{WrittenAt: &metav1.Time{}}, func(f *fake) {
				f.found = [][]string{{"nb-2-big-Data.db"}, {"nb-2-big-Data.db"}}
			}, imports, "the JVM has not loaded the SSTable", true},
		"import that Cassandra passes over": {v1alpha1.OperationImportSuperuser, arguments{},
			func(f *fake) { f.found = [][]string{nil, nil} }, imports, "the JVM has not loaded the SSTable", true},
		"import that is refused": {v1alpha1.OperationImportSuperuser, arguments{}, func(f *fake) {
			f.found, f.fails["load system_auth.roles"] = [][]string{nil}, errors.New("Failed importing SSTables")
		}, strings.TrimSuffix(imports, "; where is helenus_root"), "Failed importing", true},
		"import without a hash": {v1alpha1.OperationImportSuperuser, arguments{},
			func(f *fake) { delete(f.secrets["orders-roles"], "helenus_root.hash") }, "", "the hash of the password",
			true},
		"import without a Secret": {v1alpha1.OperationImportSuperuser, arguments{},
			func(f *fake) { f.secrets = nil }, "", "no Secret orders-roles", true},
		"roles": {v1alpha1.OperationSetRoles,
			arguments{SuperuserSecret: "people", Replication: map[string]int32{"dc1": 3}}, nil,
			"set roles {{Owner a} {helenus_root r} {helenus_operator o} a0} for map[dc1:3]", "set", false},
		"roles of another Secret": {v1alpha1.OperationSetRoles, arguments{SuperuserSecret: "other"}, nil, "",
			"no Secret other", true},
		"login": {v1alpha1.OperationProveLogin, arguments{SuperuserSecret: "people"}, nil,
			"prove {{Owner a} {helenus_root r} {helenus_operator o} a0}", "Owner and helenus_operator log in", false},
		"login of the superuser": {v1alpha1.OperationProveLogin,
			arguments{SuperuserSecret: "people", SuperuserAlone: true}, nil,
			"prove {Owner a}, not a0", "Owner logs in", false},
		"password": {v1alpha1.OperationSetPassword, arguments{SuperuserSecret: "people"}, nil,
			"set password {{Owner a} {helenus_root r} {helenus_operator o} a0}", "set", false},
		"password that is unknown": {v1alpha1.OperationSetPassword, arguments{SuperuserSecret: "people"}, func(f *fake) {
			f.fails["set password {{Owner a} {helenus_root r} {helenus_operator o} a0}"] =
				errors.New(v1alpha1.PasswordUnknown)
		}, "set password {{Owner a} {helenus_root r} {helenus_operator o} a0}", v1alpha1.PasswordUnknown, true},
		"roles of applications": {v1alpha1.OperationKeepRoles, arguments{SuperuserSecret: "people",
			Roles: []v1alpha1.RoleIntent{{ApplicationRole: v1alpha1.ApplicationRole{Name: "app", SecretName: "people",
				Grants: []v1alpha1.RoleGrant{{Keyspace: "shop", Permissions: []v1alpha1.Permission{"SELECT"}}}}}}}, nil,
			"keep [{{app a} [{shop [SELECT]}] []}] as {Owner a}", "kept", false},
		"roles without a password": {v1alpha1.OperationKeepRoles, arguments{SuperuserSecret: "people",
			Roles: []v1alpha1.RoleIntent{{ApplicationRole: v1alpha1.ApplicationRole{Name: "app",
				SecretName: "orders-roles"}}}}, nil, "", "has 0 bytes, and must have 1 to 72", true},
		"checks": {v1alpha1.OperationCheckRows, arguments{SuperuserSecret: "people",
			Checks: []v1alpha1.RowCheck{{Query: "SELECT v FROM shop.t"}}}, nil,
			`check "SELECT v FROM shop.t" as {Owner a}`, "checked", false},
		"checks where nobody logs in": {v1alpha1.OperationCheckRows, arguments{
			Checks: []v1alpha1.RowCheck{{Query: "SELECT v FROM shop.t"}}}, nil,
			`check "SELECT v FROM shop.t" as { }`, "checked", false},
		"login that is refused": {v1alpha1.OperationProveLogin, arguments{SuperuserSecret: "people"}, func(f *fake) {
			f.fails["prove {{Owner a} {helenus_root r} {helenus_operator o} a0}"] = errors.New("login refused")
		}, "prove {{Owner a} {helenus_root r} {helenus_operator o} a0}", "login refused", true},
		"system keyspaces": {v1alpha1.OperationAlterSystemKeyspaces, arguments{Replication: map[string]int32{"dc1": 3}},
			nil,
			"alter system ones to map[dc1:3]", "altered", false},
		"system keyspaces, exactly": {v1alpha1.OperationAlterSystemKeyspaces,
			arguments{Replication: map[string]int32{"dc1": 2}, Exact: true}, nil,
			"set system ones to map[dc1:2]", "altered", false},
		"decommission": {v1alpha1.OperationDecommission, arguments{}, leaving(facts.ModeDecommissioned), "decommission",
			"the node has left the ring", false},
		"decommission of the last one": {v1alpha1.OperationDecommission, arguments{Force: true},
			leaving(facts.ModeDecommissioned), "decommission by force", "the node has left the ring", false},
		"decommission that was refused": {v1alpha1.OperationDecommission, arguments{}, func(f *fake) {
			f.fails["decommission"] = errors.New("Not enough live nodes")
		}, "decommission", "Not enough live nodes", true},
		"decommission beside one that runs": {v1alpha1.OperationDecommission, arguments{}, func(f *fake) {
			f.ring.Mode, f.fails["decommission"] = facts.ModeLeaving, cassandra.ErrLeaving
			f.before = func(what string) {
				if what == "wait" {
					f.ring.Mode = facts.ModeDecommissioned
				}
			}
		}, "decommission", "the node has left the ring", false},
		"decommission that is found again, and has ended": {v1alpha1.OperationDecommission, arguments{},
			func(f *fake) { f.ring.Mode, f.from = facts.ModeDecommissioned, &operation.Handle{} }, "",
			"the node has left the ring", false},
		"decommission that is found again, and has failed": {v1alpha1.OperationDecommission, arguments{},
			func(f *fake) { f.ring.Mode, f.from = facts.ModeDecommissionFailed, &operation.Handle{} }, "",
			"does not leave any more: its mode is DECOMMISSION_FAILED", true},
		"decommission of 5.0, answered at once": {v1alpha1.OperationDecommission, arguments{}, func(f *fake) {
			f.ring.Mode, f.from = facts.ModeLeaving, &operation.Handle{}
			f.before = func(what string) {
				if what == "wait" && len(f.calls) == 2 {
					f.ring.Mode = facts.ModeDecommissioned
				}
			}
		}, "decommission; decommission", "the node has left the ring", false},
		"removal": {v1alpha1.OperationRemoveNode, arguments{HostID: hostID}, down(func(f *fake) {
			f.before = func(string) { f.ring.Endpoints[1].Status = facts.StatusRemoved }
		}), "remove " + hostID, "is removed from the ring", false},
		"removal beside one that runs": {v1alpha1.OperationRemoveNode, arguments{HostID: hostID}, down(func(f *fake) {
			f.fails["remove "+hostID] = cassandra.ErrRemoving
			f.before = func(what string) {
				if what == "wait" {
					f.ring.Endpoints[1].Status = facts.StatusRemoved
				}
			}
		}), "remove " + hostID, "is removed from the ring", false},
		"removal of one that it does not see": {v1alpha1.OperationRemoveNode, arguments{HostID: "other"}, nil, "",
			"sees no member with host id other", true},
		"removal that is found again, and is over": {v1alpha1.OperationRemoveNode, arguments{HostID: hostID},
			func(f *fake) { f.from = &operation.Handle{} }, "", "is removed from the ring", false},
		"removal of one that is up": {v1alpha1.OperationRemoveNode, arguments{HostID: hostID}, down(func(f *fake) {
			f.ring.Endpoints[1].Live = true
		}), "", "is up at", true},
		"keyspaces": {v1alpha1.OperationAlterKeyspaces,
			arguments{KeyspaceReplication: []v1alpha1.KeyspaceReplication{{Keyspace: "shop",
				Replication: map[string]int32{"dc1": 3}}}}, nil,
			"alter to map[shop:map[dc1:3]]", "altered", false},
		"keyspaces, exactly": {v1alpha1.OperationAlterKeyspaces,
			arguments{Exact: true, KeyspaceReplication: []v1alpha1.KeyspaceReplication{{Keyspace: "shop",
				Replication: map[string]int32{"dc2": 0}}}}, nil,
			"set to map[shop:map[dc2:0]]", "altered", false},

		"cleanup": {v1alpha1.OperationCleanup, arguments{Jobs: 2}, nil,
			"cleanup accounts by 2; cleanup shop by 2", "cleaned up accounts, shop", false},
		"cleanup by one, on a small disk": {v1alpha1.OperationCleanup, arguments{Jobs: 1, Keyspaces: shop.Keyspaces},
			func(f *fake) { f.free = 5 << 20 }, "cleanup shop by 1", "cleaned up shop", false},
		"cleanup without room": {v1alpha1.OperationCleanup, arguments{Jobs: 2}, func(f *fake) { f.free-- }, "",
			"keyspace accounts: it may write 9 MiB before it removes what it replaces, and 8 MiB are free", true},
		"cleanup of nothing": {v1alpha1.OperationCleanup, arguments{}, func(f *fake) { f.ring.Keyspaces = nil }, "",
			"there is no keyspace to do it for", false},
		"cleanup beside a strange one": {v1alpha1.OperationCleanup, arguments{},
			func(f *fake) { f.ring.Keyspaces["odd"] = "Own {}" }, "cleanup accounts by 0; cleanup shop by 0",
			`cleaned up accounts, shop; skipped keyspace odd: parse replication "Own {}"`, false},
		"cleanup of what is local": {v1alpha1.OperationCleanup, arguments{Keyspaces: []string{"shop", "system"}}, nil,
			"",
			`keyspace "system" is not there, or is local to each node: the ring replicates accounts, shop`, true},
		"cleanup while ranges begin to move": {v1alpha1.OperationCleanup, arguments{},
			func(f *fake) { f.before = func(string) { f.ring.Pending = 7 } },
			"cleanup accounts by 0", "keyspace shop: 7 ranges are on their way to new owners (cleaned up before: " +
				"accounts)", true},

		"upgrade": {v1alpha1.OperationUpgradeSSTables, arguments{Jobs: 2}, func(f *fake) { f.ring.Pending = 7 },
			"upgrade accounts by 2; upgrade shop by 2; upgrade system by 2; upgrade system_schema by 2",
			"upgraded accounts, shop, system, system_schema", false},
		"upgrade without room": {v1alpha1.OperationUpgradeSSTables, arguments{Jobs: 2}, func(f *fake) { f.free-- }, "",
			"keyspace accounts: it may write 9 MiB", true},

		"compact": {v1alpha1.OperationCompact, arguments{Split: true, Keyspaces: shop.Keyspaces},
			func(f *fake) { f.free = 6 << 20 }, "compact shop [] split true", "compacted shop", false},
		"compact without room": {v1alpha1.OperationCompact, arguments{}, func(f *fake) { f.free = 6<<20 - 1 }, "",
			"it may write 6 MiB before it removes what it replaces, and 5 MiB are free", true},
		"compact of a small table": {v1alpha1.OperationCompact,
			arguments{Keyspaces: shop.Keyspaces, Tables: []string{"users"}}, func(f *fake) { f.free = 4 << 20 },
			"compact shop [users] split false", "compacted shop", false},
		"collect garbage": {v1alpha1.OperationGarbageCollect, arguments{Jobs: 2},
			func(f *fake) { f.free = 6 << 20 }, "collect accounts by 2; collect shop by 2",
			"collected the garbage of accounts, shop", false},
		"collect garbage without room": {v1alpha1.OperationGarbageCollect, arguments{Jobs: 2},
			func(f *fake) { f.free = 5 << 20 }, "", "it may write 6 MiB", true},
		"scrub": {v1alpha1.OperationScrub, arguments{Jobs: 2, Keyspaces: []string{"system"}},
			func(f *fake) { f.free = 10 << 20 }, "scrub system by 2", "scrubbed system", false},
		"scrub without room for its snapshot": {v1alpha1.OperationScrub, arguments{Jobs: 2}, nil, "",
			"it may write 10 MiB", true},
		"verify on a full disk": {v1alpha1.OperationVerify, arguments{}, func(f *fake) { f.free = 0 },
			"verify accounts; verify shop; verify system; verify system_schema",
			"verified accounts, shop, system, system_schema", false},
		"empty caches": {v1alpha1.OperationInvalidateCaches, arguments{}, nil, "invalidate", "emptied the caches", false},
		"index": {v1alpha1.OperationRebuildIndex,
			arguments{Keyspaces: shop.Keyspaces, Tables: []string{"users"}, Indexes: []string{"by_name"}}, nil,
			"index shop.users [by_name]", "rebuilt indexes in shop", false},
		"no snapshot": {v1alpha1.OperationClearSnapshot, arguments{Tag: "t", Keyspaces: []string{"shop", "system"}}, nil,
			"clear t of shop; clear t of system", "cleared snapshot t of shop, system", false},
		"snapshot of tables for a day": {v1alpha1.OperationSnapshot, arguments{Tag: "t", Keyspaces: shop.Keyspaces,
			Tables: []string{"users"}, TTL: &metav1.Duration{Duration: 24 * time.Hour}}, nil,
			"clear t of shop; snapshot t of shop [users] for 24h0m0s", "snapshot t of shop", false},
		"cancelled before it begins": {v1alpha1.OperationFlush, arguments{}, func(f *fake) { f.cancelled = true }, "",
			"keyspace accounts: cancelled", true},
		"cancelled between keyspaces": {v1alpha1.OperationFlush, arguments{},
			func(f *fake) { f.before = func(string) { f.cancelled = true } }, "flush accounts",
			"keyspace shop: cancelled (flushed before: accounts)", true},
		"cancelled when all is done": {v1alpha1.OperationFlush, shop,
			func(f *fake) { f.before = func(string) { f.cancelled = true } }, "flush shop", "flushed shop", false},
		"stopped by Cassandra": {v1alpha1.OperationCompact, shop, func(f *fake) {
			f.fails["compact shop [] split false"] = errors.New("Compaction interrupted")
			f.before = func(string) { f.cancelled = true }
		}, "compact shop [] split false", "cancelled: keyspace shop: Compaction interrupted", true},

		"flush": {v1alpha1.OperationFlush, arguments{}, nil, "flush accounts; flush shop", "flushed accounts, shop",
			false},

		"snapshot of all": {v1alpha1.OperationSnapshot, arguments{Tag: "t"}, nil,
			"clear t of accounts; snapshot t of accounts; clear t of shop; snapshot t of shop; clear t of system; " +
				"snapshot t of system; clear t of system_schema; snapshot t of system_schema",
			"snapshot t of accounts, shop, system, system_schema", false},
		"snapshot that fails": {v1alpha1.OperationSnapshot, arguments{Tag: "t", Keyspaces: []string{"system"}},
			func(f *fake) { f.fails["snapshot t of system"] = cassandra.ErrSnapshotExists },
			"clear t of system; snapshot t of system", "keyspace system: the snapshot exists", true},

		"truncate": {v1alpha1.OperationTruncate, arguments{Keyspaces: shop.Keyspaces, Tables: []string{"carts", "users"}},
			nil, "truncate shop.carts; truncate shop.users", "truncated carts, users of shop", false},
		"truncate that is refused": {v1alpha1.OperationTruncate,
			arguments{Keyspaces: shop.Keyspaces, Tables: []string{"carts", "users"}},
			func(f *fake) { f.fails["truncate shop.carts"] = errors.New("Cannot achieve consistency level ALL") },
			"truncate shop.carts", "consistency level ALL", true},
		"truncate of all": {v1alpha1.OperationTruncate, shop, nil, "", "name the tables", true},
		"truncate that an agent has asked for": {v1alpha1.OperationTruncate,
			arguments{Keyspaces: shop.Keyspaces, Tables: []string{"carts"}},
			func(f *fake) { f.from = &operation.Handle{Keyspace: "shop", Asked: true} }, "", "is not known", true},
		"truncate that nobody has asked for": {v1alpha1.OperationTruncate,
			arguments{Keyspaces: shop.Keyspaces, Tables: []string{"carts"}},
			func(f *fake) { f.from = &operation.Handle{} }, "truncate shop.carts", "truncated carts of shop", false},

		"rebuild": {v1alpha1.OperationRebuild, arguments{SourceDatacenter: "dc1"}, nil,
			"rebuild accounts from dc1; rebuild shop from dc1", "rebuilt accounts, shop", false},
		"rebuild of 4.1": {v1alpha1.OperationRebuild, arguments{SourceDatacenter: "dc1", Keyspaces: shop.Keyspaces},
			func(f *fake) { f.ring.ReleaseVersion, f.ring.NativeRunning = "4.1.10", true },
			"forget what was streamed of shop; rebuild shop from dc1", "rebuilt shop", false},
		"rebuild of 4.1, CQL closed": {v1alpha1.OperationRebuild,
			arguments{SourceDatacenter: "dc1", Keyspaces: shop.Keyspaces},
			func(f *fake) { f.ring.ReleaseVersion = "4.1.10" }, "rebuild shop from dc1", "rebuilt shop", false},
		"rebuild, silent": {v1alpha1.OperationRebuild, arguments{SourceDatacenter: "dc1", Keyspaces: shop.Keyspaces},
			func(f *fake) { f.fails["rebuild shop from dc1"] = jolokia.ErrUnreachable }, "rebuild shop from dc1",
			"cut off: keyspace shop", true},

		"repair": {v1alpha1.OperationRepair, arguments{Full: true, Keyspaces: shop.Keyspaces,
			Datacenters: []string{"dc1"}},
			ended(cassandra.RepairInProgress, cassandra.RepairCompleted),
			"repair shop incremental false primary false in [dc1]; status of 7; status of 7", "repaired shop", false},
		"repair of primary ranges": {v1alpha1.OperationRepair, arguments{Full: true, Keyspaces: shop.Keyspaces,
			PrimaryRange: true}, ended(cassandra.RepairCompleted),
			"repair shop incremental false primary true in []; status of 7", "repaired shop", false},
		"repair without a lost member": {v1alpha1.OperationRepair, arguments{Full: true, Keyspaces: shop.Keyspaces,
			Without: []string{"host-lost"}}, func(f *fake) {
			ended(cassandra.RepairCompleted)(f)
			f.ring.Keyspaces["shop"] = "NetworkTopologyStrategy {dc1=3}"
			f.ring.Endpoints = []facts.Endpoint{{Address: "10.0.0.1", HostID: "host-1", Tokens: []int64{1}, Live: true},
				{Address: "10.0.0.2", HostID: "host-2", Tokens: []int64{2}, Live: true},
				{Address: "10.0.0.3", HostID: "host-lost", Tokens: []int64{3}},
				{Address: "10.0.0.4", HostID: "host-4", Live: true}}
		}, "repair shop among [10.0.0.1 10.0.0.2]; status of 7", "repaired shop", false},
		"repair without a member that is up": {v1alpha1.OperationRepair, arguments{Full: true,
			Keyspaces: shop.Keyspaces, Without: []string{"host-2"}}, func(f *fake) {
			f.ring.Endpoints = []facts.Endpoint{{Address: "10.0.0.2", HostID: "host-2", Tokens: []int64{2}, Live: true}}
		}, "", "is to be left out since it is lost, and is up at 10.0.0.2", true},
		"repair of nothing": {v1alpha1.OperationRepair, shop, nil, "repair shop incremental true primary false in []",
			"repaired shop", false},
		"repair fails": {v1alpha1.OperationRepair, shop, ended(cassandra.RepairFailed),
			"repair shop incremental true primary false in []; status of 7",
			"keyspace shop: repair failed: Endpoint not alive", true},
		"repair that is recorded later": {v1alpha1.OperationRepair, shop,
			ended(cassandra.RepairUnknown, cassandra.RepairInProgress, cassandra.RepairCompleted),
			"repair shop incremental true primary false in []; status of 7; status of 7; status of 7",
			"repaired shop", false},
		"repair that is never recorded": {v1alpha1.OperationRepair, shop,
			ended(slices.Repeat([]cassandra.RepairState{cassandra.RepairUnknown}, 45)...),
			"repair shop incremental true primary false in []" + strings.Repeat("; status of 7", 45),
			"keyspace shop: the JVM does not know", true},
		"repair of another JVM": {v1alpha1.OperationRepair, shop,
			ended(cassandra.RepairInProgress, cassandra.RepairUnknown),
			"repair shop incremental true primary false in []; status of 7; status of 7",
			"keyspace shop: the JVM does not know", true},

		"assassinate": {v1alpha1.OperationAssassinate, arguments{Endpoint: endpoint}, nil, "assassinate " + endpoint,
			"members hear that " + endpoint + " has left", false},
		"assassinate, forgotten later": {v1alpha1.OperationAssassinate, arguments{Endpoint: endpoint},
			stale(func(f *fake, _ *facts.Endpoint) {
				members := f.ring.Endpoints
				f.before = func(string) { f.ring.Endpoints = members }
			}), "assassinate " + endpoint, "members hear that " + endpoint + " has left", false},
		"assassinate, left": {v1alpha1.OperationAssassinate, arguments{Endpoint: endpoint},
			stale(func(_ *fake, e *facts.Endpoint) { e.Status = facts.StatusLeft }), "", "for one that has left",
			false},
		"assassinate, a node": {v1alpha1.OperationAssassinate, arguments{Endpoint: endpoint},
			stale(func(_ *fake, e *facts.Endpoint) { e.Live = true }), "", "is no join that is over", true},
		"assassinate, somebody's": {v1alpha1.OperationAssassinate, arguments{Endpoint: endpoint},
			stale(func(f *fake, _ *facts.Endpoint) {
				f.before = func(string) { f.there = []string{"other"} }
			}), "", "is the address of node other now", true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			if c.change != nil {
				c.change(f)
			}
			message, err := f.run(t, c.of, &c.arguments)
			if calls := strings.Join(f.calls, "; "); calls != c.calls {
				t.Errorf("calls %s, want %s", calls, c.calls)
			}
			switch {
			case (err != nil) != c.fails:
				t.Errorf("%q, error %v", message, err)
			case err != nil && !strings.Contains(err.Error(), c.want), err == nil && !strings.Contains(message, c.want):
				t.Errorf("%q, error %v, want %q", message, err, c.want)
			}
			if silent := strings.Contains(c.want, "cut off"); silent != errors.Is(err, ErrCutOff) {
				t.Errorf("error %v, cut off: %v", err, silent)
			}
		})
	}
}

// Each type whose work Cassandra can end is told so, on the keyspace in work.
func TestStop(t *testing.T) {
	for o, want := range map[v1alpha1.OperationType]string{
		v1alpha1.OperationCleanup:         "stop [Cleanup] on shop",
		v1alpha1.OperationUpgradeSSTables: "stop [Upgrade sstables] on shop",
		v1alpha1.OperationCompact:         "stop [Major compaction Compaction] on shop",
		v1alpha1.OperationGarbageCollect:  "stop [Remove deleted data] on shop",
		v1alpha1.OperationScrub:           "stop [Scrub] on shop",
		v1alpha1.OperationVerify:          "stop [Verify] on shop",
		v1alpha1.OperationRepair:          "stop repairs",
		v1alpha1.OperationRebuild:         "", v1alpha1.OperationFlush: "", v1alpha1.OperationRebuildIndex: "",
	} {
		f := newFake()
		for _, h := range []operation.Handle{{Keyspace: "shop", Command: 5}, {}, {Command: 4, Asked: true}} {
			if err := Stop(t.Context(), f, o, h); err != nil {
				t.Error(err)
			}
		}
		if calls := strings.Join(f.calls, "; "); calls != want {
			t.Errorf("%s: calls %s, want %s", o, calls, want)
		}
	}
}

func TestProgress(t *testing.T) {
	f := newFake()
	if _, err := f.run(t, v1alpha1.OperationCleanup, nil); err != nil {
		t.Fatal(err)
	}
	if said := strings.Join(f.said, "; "); said != "0/2 keyspace accounts, 1 of 2; 1/2 keyspace shop, 2 of 2" {
		t.Errorf("said %s", said)
	}
}

func TestTheEndOfTheAgentEndsAnOperation(t *testing.T) {
	for name, o := range map[string]v1alpha1.OperationType{"repair 7": v1alpha1.OperationRepair,
		"10.0.0.99": v1alpha1.OperationAssassinate} {
		f := newFake()
		f.states = []cassandra.RepairState{cassandra.RepairInProgress}
		f.ring.Endpoints = append(f.ring.Endpoints, facts.Endpoint{Address: "10.0.0.99", Status: facts.StatusBootstrap})
		h := &Host{
			JVM:       f,
			Ring:      func(context.Context) (*facts.Ring, error) { return f.ring, nil },
			NodesAt:   func(context.Context, string) []string { return nil },
			Note:      func(operation.Handle) error { return nil },
			Say:       func(int, int, string) {},
			Cancelled: func() bool { return false },
			Wait:      func(context.Context, time.Duration) error { return context.Canceled },
		}
		_, err := Run(t.Context(), h, &v1alpha1.OperationIntent{Type: o,
			Arguments: &v1alpha1.OperationArguments{Endpoint: "10.0.0.99"}}, nil)
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", o, err)
		}
	}
}

// What goes on in the JVM is followed by its handle, and nothing begins beside it.
func TestAnOperationIsFollowedByItsHandle(t *testing.T) {
	const completed, running = cassandra.RepairCompleted, cassandra.RepairInProgress
	for name, c := range map[string]struct {
		of     v1alpha1.OperationType
		from   operation.Handle
		change func(*fake)
		calls  string
		fails  string
	}{
		"a repair that runs": {v1alpha1.OperationRepair, operation.Handle{Keyspace: "accounts", Command: 5},
			func(f *fake) { f.states = []cassandra.RepairState{running, completed, completed} },
			"status of 5; status of 5; repair shop incremental true primary false in []; status of 7", ""},
		"a repair that the JVM does not know": {v1alpha1.OperationRepair, operation.Handle{Keyspace: "shop", Command: 5},
			func(f *fake) { f.states = []cassandra.RepairState{cassandra.RepairUnknown} },
			"status of 5", "the JVM does not know"},
		"a repair that has failed": {v1alpha1.OperationRepair, operation.Handle{Keyspace: "shop", Command: 5},
			func(f *fake) { f.states = []cassandra.RepairState{cassandra.RepairFailed} },
			"status of 5", "repair failed"},
		"a repair whose number nobody heard": {v1alpha1.OperationRepair,
			operation.Handle{Keyspace: "shop", Command: 4, Asked: true},
			func(f *fake) {
				f.repairs, f.states = [][]int{{5}, {}}, []cassandra.RepairState{completed}
			}, "which repairs after 4; which repairs after 4; " +
				"repair shop incremental true primary false in []; status of 7", ""},
		"a cleanup that runs": {v1alpha1.OperationCleanup, operation.Handle{Keyspace: "shop"},
			func(f *fake) {
				f.compacting = [][]string{{"shop"}, {}, {"shop"}, {"accounts"}, {}, {}, {}, {}}
			}, strings.Repeat("which Cleanup; ", 8) + "cleanup shop by 0", ""},
		"an upgrade that runs": {v1alpha1.OperationUpgradeSSTables, operation.Handle{Keyspace: "system_schema"},
			func(f *fake) {
				f.compacting = [][]string{{"system_schema"}, {}, {}, {}, {}, {}}
			}, strings.Repeat("which Upgrade sstables; ", 6) + "upgrade system_schema by 0", ""},
		"a rebuild that runs": {v1alpha1.OperationRebuild, operation.Handle{Keyspace: "shop"},
			func(f *fake) {
				f.fails["rebuild shop from dc1"] = cassandra.ErrRebuilding
				f.before = func(what string) {
					if what == "wait" {
						delete(f.fails, "rebuild shop from dc1")
					}
				}
			}, "rebuild shop from dc1; rebuild shop from dc1", ""},
		"a snapshot that the JVM has taken": {v1alpha1.OperationSnapshot, operation.Handle{Keyspace: "shop"},
			func(f *fake) { f.fails["snapshot t of shop"] = cassandra.ErrSnapshotExists },
			"snapshot t of shop; clear t of system; snapshot t of system; clear t of system_schema; " +
				"snapshot t of system_schema", ""},
		"one that has set nothing going": {v1alpha1.OperationFlush, operation.Handle{}, nil,
			"flush accounts; flush shop", ""},
		"one that nobody could follow": {v1alpha1.OperationRepair, operation.Handle{Keyspace: "shop", Command: 5},
			func(f *fake) {
				f.states, f.fails["note"] = []cassandra.RepairState{running}, errors.New("disk is full")
			}, "", "disk is full"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.from = &c.from
			if c.change != nil {
				c.change(f)
			}
			_, err := f.run(t, c.of, &v1alpha1.OperationArguments{SourceDatacenter: "dc1", Tag: "t"})
			if calls := strings.Join(f.calls, "; "); calls != c.calls {
				t.Errorf("calls %s, want %s", calls, c.calls)
			}
			if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("error %v, want %q", err, c.fails)
			}
		})
	}
	f := newFake()
	f.states = []cassandra.RepairState{completed, completed}
	if _, err := f.run(t, v1alpha1.OperationRepair, nil); err != nil {
		t.Fatal(err)
	}
	// Wherever the agent ends before the last repair has begun, the next one begins it.
	noted := f.noted
	if last := noted[len(noted)-1]; last != (operation.Handle{Keyspace: "shop", Command: 7}) {
		t.Errorf("noted at last %+v", last)
	}
	for _, h := range noted[:len(noted)-1] {
		f := newFake()
		f.from, f.repairs, f.states = &h, [][]int{{}}, []cassandra.RepairState{completed, completed}
		if _, err := f.run(t, v1alpha1.OperationRepair, nil); err != nil {
			t.Errorf("from %+v: %v", h, err)
		}
		if calls := strings.Join(f.calls, "; "); !strings.Contains(calls, "repair shop incremental") {
			t.Errorf("from %+v: calls %s", h, calls)
		}
	}
}
