package cluster

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/core/cluster/ticket"
	"helenus.io/helenus/internal/core/facts"
)

const sourceUID types.UID = "11111111-0000-4000-8000-000000000001"

// restoring is a ring of a datacenter that is to be made from a backup of one with another name.
func restoring(t *testing.T, sizes ...int32) *world {
	t.Helper()
	w := newWorld(t, datacenter("dc1", sizes...))
	w.snapshot.Cluster.Spec.Bootstrap = &v1alpha1.Bootstrap{Restore: &v1alpha1.Restore{
		Store: v1alpha1.StoreReference{Name: "main"}, Source: v1alpha1.RestoreSource{UID: sourceUID}, Backup: "b1",
		Roles: v1alpha1.RolesFresh,
	}}
	d := &format.Backup{Version: format.Version, ID: "b1",
		Cluster: format.Cluster{UID: string(sourceUID), Name: "old", Namespace: "shop", CassandraName: "shop.old"}}
	for r, size := range sizes {
		for n := size - 1; n >= 0; n-- { // in another order than that of the spec
			d.Nodes = append(d.Nodes, format.Node{
				Name: fmt.Sprintf("old-east-a%d-%d", r, n), HostID: fmt.Sprintf("source-%d-%d", r, n),
				Datacenter: "dc1",
				Rack:       fmt.Sprintf("r%d", r+1), CassandraVersion: "5.0.6",
				Tokens: []string{fmt.Sprint(r), fmt.Sprint(10 + n), fmt.Sprint(100*r + int(n) + 20),
					fmt.Sprint(-r*100 - int(n) - 1)},
			})
		}
	}
	w.snapshot.Backup = &facts.Backup{Description: d,
		Store: v1alpha1.BackupStoreSpec{S3: &v1alpha1.S3Store{Bucket: "backups", SecretName: "key"}}}
	return w
}

// Each node gets a ticket for what the one of its place had: by the numbers in the names, of which
// ten comes after nine.
func TestARingIsMadeFromABackup(t *testing.T) {
	w := restoring(t, 1, 11)
	seen := map[string]*v1alpha1.JoinTicket{}
	for range 60 {
		w.pass()
		for _, n := range w.snapshot.Records() {
			if j := n.Record.Spec.Join; j != nil {
				seen[n.Name] = j
			}
			if n.Record.Spec.ClientTraffic != v1alpha1.TrafficClosed && len(w.snapshot.Ledger.Members) != 12 {
				t.Fatal("a node is open to clients before all are restored")
			}
		}
	}
	if len(seen) != 12 {
		t.Fatalf("%d tickets", len(seen))
	}
	for name, j := range seen {
		var rack, node int
		if _, err := fmt.Sscanf(name, "orders-dc1-r%d-%d", &rack, &node); err != nil {
			t.Fatal(err)
		}
		r, want := j.Restore, fmt.Sprintf("source-%d-%d", rack-1, node)
		if r == nil || r.HostID != want || r.Cluster != sourceUID || r.Backup != "b1" ||
			r.Store.SecretNames()[0] != "key" ||
			r.Roles != v1alpha1.RolesFresh || j.Tokens[1] != fmt.Sprint(10+node) {
			t.Errorf("%s: %+v %v, want what %s had", name, r, j.Tokens, want)
		}
	}
	w.wantOpen()
	if !slices.Contains(w.events, "RestoringRing") {
		t.Errorf("events %v", w.events)
	}
	rules := w.snapshot.Shared.Roles[v1alpha1.AgentServiceAccountName("orders")].Rules
	if last := rules[len(rules)-1]; last.Resources[0] == "secrets" {
		t.Errorf("the agents may still read %v", last.ResourceNames)
	}
}

// A ring that is made as it was at a time has tickets for the backup that was found, and that time.
func TestARingIsMadeAsItWas(t *testing.T) {
	w := restoring(t, 1, 1)
	at := metav1.NewTime(w.now.Add(-time.Hour))
	w.snapshot.Cluster.Spec.Bootstrap.Restore.Backup = ""
	w.snapshot.Cluster.Spec.Bootstrap.Restore.PointInTime = &at
	seen := 0
	for range 60 {
		w.pass()
		for _, n := range w.snapshot.Records() {
			if j := n.Record.Spec.Join; j != nil {
				seen++
				if j.Restore == nil || j.Restore.Backup != "b1" || !j.Restore.PointInTime.Equal(&at) {
					t.Fatalf("the ticket is for %+v", j.Restore)
				}
			}
		}
	}
	if seen == 0 {
		t.Error("there was no ticket")
	}
	w.wantOpen()
}

// One of the latest backup before a time has tickets for that which was found, and says which.
func TestARingIsMadeFromTheLatestBackup(t *testing.T) {
	for name, has := range map[string]string{"": "b1",
		"its ring has the name of this one": "b1) cannot be restored"} {
		w := restoring(t, 1, 1)
		at := metav1.NewTime(w.now)
		r := w.snapshot.Cluster.Spec.Bootstrap.Restore
		r.Backup, r.LatestBefore = "", &at
		if name != "" {
			w.snapshot.Backup.Description.Cluster.CassandraName = "shop.orders"
			wantStalled(t, w.settle(), v1alpha1.ReasonRestoreImpossible, "the latest backup before "+
				at.UTC().Format(time.RFC3339)+" (backup "+has)
			continue
		}
		for range 60 {
			w.pass()
			for _, n := range w.snapshot.Records() {
				if j := n.Record.Spec.Join; j != nil && (j.Restore.Backup != has || j.Restore.PointInTime != nil) {
					t.Fatalf("the ticket is for %+v", j.Restore)
				}
			}
		}
		w.wantOpen()
	}
}

// Records say where commit logs are kept, and agents may read the Secrets of that store.
func TestWhereCommitLogsAreKept(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	w.settle()
	w.wantOpen()
	for _, wanted := range []*v1alpha1.CommitLogArchive{
		{Store: v1alpha1.BackupStoreSpec{S3: &v1alpha1.S3Store{Bucket: "backups", SecretName: "key"},
			Encryption: &v1alpha1.StoreEncryption{Mode: v1alpha1.StoreEncryptionClient, SecretName: "lines"}},
			MaxDisk: 10}, nil,
	} {
		w.snapshot.CommitLog = wanted
		w.settle()
		for _, n := range w.snapshot.Records() {
			if !equality.Semantic.DeepEqual(n.Record.Spec.CommitLog, wanted) {
				t.Errorf("%s keeps its commit log in %+v, want %+v", n.Name, n.Record.Spec.CommitLog, wanted)
			}
		}
		reads := false
		for _, rule := range w.snapshot.Shared.Roles[v1alpha1.AgentServiceAccountName("orders")].Rules {
			reads = reads || rule.Resources[0] == "secrets" && slices.Contains(rule.ResourceNames, "key") &&
				slices.Contains(rule.ResourceNames, "lines")
		}
		if reads != (wanted != nil) {
			t.Errorf("agents may read the Secrets: %t", reads)
		}
	}
}

func TestWhatCannotBeRestored(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world, d *format.Backup)
		says   string
	}{
		"nobody has read it": {func(w *world, _ *format.Backup) { w.snapshot.Backup = nil }, ""},
		"the store is silent": {func(w *world, _ *format.Backup) {
			w.snapshot.Backup = &facts.Backup{Problem: "silent"}
		}, ""},
		"there is no such backup": {func(w *world, _ *format.Backup) {
			w.snapshot.Backup = &facts.Backup{Problem: "there is none", Missing: true}
		}, "there is none"},
		"roles and another shape": {func(w *world, d *format.Backup) {
			d.Nodes = d.Nodes[1:]
			w.snapshot.Cluster.Spec.Bootstrap.Restore.Roles = v1alpha1.RolesRestore
		}, "bootstrap.restore.roles Restore needs the shape of the backup: its rack dc1/r1 has 0 nodes"},
		"roles and a node that was down": {func(w *world, d *format.Backup) {
			d.Nodes, d.LeftOut = d.Nodes[1:], d.Nodes[:1]
			w.snapshot.Cluster.Spec.Bootstrap.Restore.Roles = v1alpha1.RolesRestore
		}, "bootstrap.restore.roles Restore needs the shape of the backup: it was taken without "},
		"a time and another shape": {func(w *world, d *format.Backup) {
			d.Nodes[1].Tokens = append(d.Nodes[1].Tokens, "5")
			r, at := w.snapshot.Cluster.Spec.Bootstrap.Restore, metav1.NewTime(w.now)
			r.Backup, r.PointInTime = "", &at
		}, "bootstrap.restore.pointInTime needs the shape of the backup"},
		"a keyspace that does not fit": {func(_ *world, d *format.Backup) {
			for i := range d.Nodes {
				d.Nodes[i].Datacenter = "east"
			}
			d.Replication = map[string]map[string]string{"shop": {"class": "EverywhereStrategy"}}
		}, "keyspace shop is replicated by EverywhereStrategy"},
		"a keyspace that it has not": {func(w *world, d *format.Backup) {
			d.Replication = map[string]map[string]string{"shop": nil, "logs": nil, "system_auth": nil}
			w.snapshot.Cluster.Spec.Bootstrap.Restore.Keyspaces = []string{"shop", "cart"}
		}, `it has no keyspace "cart" of bootstrap.restore.keyspaces; it has logs, shop`},
		"it is of a later release": {func(_ *world, d *format.Backup) { d.Nodes[2].CassandraVersion = "5.1.0" },
			"ran Cassandra 5.1.0"},
		"it has later SSTables": {func(_ *world, d *format.Backup) {
			d.Spec = []byte(`{"version": "5.0.6", "node": {"cassandraYaml": {"storage_compatibility_mode": "NONE"}},
				"datacenters": [{"name": "dc1", "nodesPerRack": 1, "racks": [{"name": "r1"}]}]}`)
		}, "had storage_compatibility_mode NONE, and this one has CASSANDRA_4"},
		"its ring has the name of this one": {func(_ *world, d *format.Backup) {
			d.Cluster.CassandraName = "shop.orders"
		}, `is named "shop.orders", too`},
		"it is another's": {func(_ *world, d *format.Backup) { d.Cluster.UID = "other" },
			"of the cluster with uid other"},
	} {
		t.Run(name, func(t *testing.T) {
			w := restoring(t, 1, 1, 1)
			c.change(w, w.snapshot.Backup.Description)
			made := w.settle()
			for _, n := range w.snapshot.Records() {
				if n.Record.Spec.Join != nil {
					t.Errorf("%s has a ticket", n.Name)
				}
			}
			switch {
			case c.says != "":
				wantStalled(t, made, v1alpha1.ReasonRestoreImpossible, c.says)
			case made.Stalled != nil || len(made.Blocked) != 1 ||
				made.Blocked[0].Reason != v1alpha1.BlockedBackupUnreadable:
				t.Errorf("%s", made)
			case made.Wake > 30*time.Second:
				t.Errorf("it is read again after %s", made.Wake)
			}
		})
	}
	w := restoring(t, 1, 1, 1)
	w.snapshot.Backup.Description.Cluster.CassandraName = "shop.orders"
	w.snapshot.Cluster.Spec.Bootstrap.Restore.SourceGone = true
	w.settle()
	w.wantOpen()
}

// One node asks what a ring must answer once its roles are made. Before it has answered no node is
// open to clients; that it does not is said, and it is asked again.
func TestARestoredRingIsChecked(t *testing.T) {
	for _, passwords := range []bool{false, true} {
		w := restoring(t, 1, 1, 1)
		if passwords {
			w.snapshot.Cluster.Spec.Security = nil // it asks by default
		}
		least := int64(3)
		checks := []v1alpha1.RowCheck{{Query: "SELECT count(*) FROM shop.orders", AtLeast: &least}}
		w.snapshot.Cluster.Spec.Bootstrap.Restore.Checks = checks
		asked, has := 0, false
		w.operate = func(n *facts.Node, o v1alpha1.OperationIntent) []v1alpha1.OperationStatus {
			at := metav1.NewTime(w.now)
			if n.Record.Status.Operation(o.ID) != nil {
				return n.Record.Status.Operations
			}
			s := v1alpha1.OperationStatus{ID: o.ID, Phase: v1alpha1.OperationSucceeded, StartedAt: &at, FinishedAt: &at}
			if o.Type == v1alpha1.OperationCheckRows {
				if asked++; !has {
					s.Phase, s.Message = v1alpha1.OperationFailed, "has 2, and must have at least 3"
				}
				if !reflect.DeepEqual(o.Arguments.Checks, checks) || (o.Arguments.SuperuserSecret != "") != passwords {
					t.Errorf("asks %+v", o.Arguments)
				}
			}
			return append(n.Record.Status.Operations, s)
		}
		made := w.settle()
		for range 10 {
			if made.Stalled == nil {
				w.now = w.now.Add(2 * time.Minute)
				made = w.settle()
			}
		}
		wantStalled(t, made, v1alpha1.ReasonCheckFailed, "at least 3")
		for _, n := range w.snapshot.Records() {
			if n.Record.Spec.ClientTraffic == v1alpha1.TrafficOpen {
				t.Errorf("%s is open to clients", n.Name)
			}
		}
		before := asked
		has = true
		w.now = w.now.Add(time.Hour)
		w.settle()
		w.wantOpen()
		if before != 5 || asked != before+1 {
			t.Errorf("asked %d times, and %d before it answered", asked, before)
		}
	}
}

// smaller is a backup of six nodes of another datacenter, of which a ring of three is to be made.
func smaller(t *testing.T) *world {
	t.Helper()
	w := restoring(t, 1, 1, 1)
	d := w.snapshot.Backup.Description
	for _, n := range d.Nodes {
		n.HostID += "-2"
		d.Nodes = append(d.Nodes, n)
	}
	for i := range d.Nodes {
		d.Nodes[i].Datacenter = "east"
	}
	d.Replication = map[string]map[string]string{"shop": {"class": "NetworkTopologyStrategy", "east": "5"},
		"logs": {"class": "EverywhereStrategy"}} // it would not fit
	w.snapshot.Cluster.Spec.Bootstrap.Restore.Keyspaces = []string{"shop"}
	return w
}

// Of a backup that was taken without a node all rows are streamed to their owners, also where the
// spec has as many nodes as it.
func TestARingIsMadeFromABackupWithoutANode(t *testing.T) {
	for _, asMany := range []bool{false, true} {
		w := restoring(t, 1, 1, 1)
		d := w.snapshot.Backup.Description
		if d.LeftOut = d.Nodes[:1]; asMany {
			d.LeftOut = []format.Node{{Name: "old", HostID: "old", Datacenter: "dc1", Rack: "r1", Tokens: []string{"7"}}}
		} else {
			d.Nodes = d.Nodes[1:]
		}
		seen := map[string]*v1alpha1.JoinTicket{}
		for range 20 {
			w.pass()
			for _, n := range w.snapshot.Records() {
				if j := n.Record.Spec.Join; j != nil {
					seen[n.Name] = j
				}
			}
		}
		for name, j := range seen {
			if j.Restore.HostID != d.Nodes[0].HostID || len(j.Restore.Datacenters) != 1 ||
				slices.Equal(j.Tokens, d.Nodes[0].Tokens) {
				t.Errorf("%s has %+v", name, j)
			}
		}
		if len(seen) != 3 {
			t.Errorf("%d tickets", len(seen))
		}
	}
}

// A ring of another shape gets fresh tokens and the schema; its nodes are members, and open to
// clients, when all have downloaded, then loaded, then cleared what is theirs. Lost ledgers change
// nothing.
func TestARingOfAnotherShapeIsMadeFromABackup(t *testing.T) {
	for name, lost := range map[string]v1alpha1.OperationType{"nothing is lost": "",
		"while nodes download": v1alpha1.OperationStageTables, "while they load": v1alpha1.OperationLoadTables,
		"while they clear": v1alpha1.OperationClearSnapshot, "with all tickets": v1alpha1.OperationLoadTables} {
		t.Run(name, func(t *testing.T) {
			nothing := lost == ""
			w := smaller(t)
			done, failed := map[v1alpha1.OperationType]int{}, 0
			before := map[v1alpha1.OperationType]v1alpha1.OperationType{
				v1alpha1.OperationLoadTables:      v1alpha1.OperationStageTables,
				v1alpha1.OperationClearSnapshot:   v1alpha1.OperationLoadTables,
				v1alpha1.OperationImportSuperuser: v1alpha1.OperationClearSnapshot,
			}
			lose := false
			w.operate = func(n *facts.Node, o v1alpha1.OperationIntent) []v1alpha1.OperationStatus {
				at := metav1.NewTime(w.now)
				if s := n.Record.Status.Operation(o.ID); s != nil {
					return n.Record.Status.Operations
				}
				s := v1alpha1.OperationStatus{ID: o.ID, Phase: v1alpha1.OperationSucceeded, StartedAt: &at,
					FinishedAt: &at}
				if of := before[o.Type]; of != "" && done[of] < 3 {
					t.Errorf("%s begins before %s has ended on all: %v", o.Type, of, done)
				}
				if r := o.Arguments; o.Type == v1alpha1.OperationLoadTables && (len(r.Restore.Members) != 3 ||
					len(r.Restore.Tables) > 0 || !slices.Equal(r.Restore.Keyspaces, []string{"shop"}) ||
					!r.Restore.NewRing || r.Restore.Cluster != sourceUID ||
					!slices.Equal(r.Restore.Store.SecretNames(), []string{"key"})) {
					t.Errorf("loads %+v", r.Restore)
				}
				if o.Type == v1alpha1.OperationLoadTables && failed == 0 {
					failed++
					s.Phase, s.Message = v1alpha1.OperationFailed, "a stream has failed"
				} else {
					done[o.Type]++
					s.Message = "done; without what n-a had of shop.orders"
				}
				lose = lose || o.Type == lost
				return []v1alpha1.OperationStatus{s}
			}
			tokens := map[string][]string{}
			for range 120 {
				w.pass()
				w.now = w.now.Add(5 * time.Second)
				if lose {
					w.snapshot.Ledger, lose, lost = nil, false, "none"
					for _, n := range w.snapshot.Records() {
						if name == "with all tickets" {
							n.Record.Spec.Join, n.Record.Spec.Operations = nil, nil
							n.Record.Status.Join, n.Record.Status.Operations = nil, nil
							done = map[v1alpha1.OperationType]int{}
						}
					}
				}
				for _, n := range w.snapshot.Records() {
					if j := n.Record.Spec.Join; j != nil {
						if r := j.Restore; r == nil || r.HostID != "source-0-0" || !reflect.DeepEqual(r.Datacenters,
							map[string]int32{"dc1": 3}) || tokens[n.Name] != nil && !slices.Equal(tokens[n.Name], j.Tokens) {
							t.Fatalf("%s: %+v", n.Name, j)
						}
						tokens[n.Name] = j.Tokens
					}
					if done[v1alpha1.OperationLoadTables] < 3 &&
						(n.Record.Spec.ClientTraffic != v1alpha1.TrafficClosed || n.Record.Spec.Member != nil) {
						t.Fatalf("%s serves before all rows are loaded: %v", n.Name, done)
					}
				}
			}
			w.wantOpen()
			if failed != 1 || len(tokens) != 3 || len(tokens[third]) != 4 {
				t.Errorf("failed %d, tokens %v", failed, tokens)
			}
			if nothing && !slices.Contains(w.events, "RestoringRing") || !slices.Contains(w.events, "FilesLeftOut") {
				t.Errorf("events %v", w.events)
			}
		})
	}
}

// What a node has in the backup nobody else may have: it is waited for, and no other serves.
func TestNobodyIsLeftOutOfARestore(t *testing.T) {
	w := restoring(t, 1, 1, 1)
	w.late[third] = true
	for range 30 {
		w.pass()
	}
	w.now = w.now.Add(2 * time.Hour)
	for range 30 {
		w.pass()
	}
	for _, n := range w.snapshot.Records() {
		if n.Record.Spec.ClientTraffic != v1alpha1.TrafficClosed {
			t.Errorf("%s is open", n.Name)
		}
	}
	if s := w.snapshot.Ledger.Step; s == nil || len(s.Wave()) != 3 || !strings.Contains(w.pass().String(), third) {
		t.Errorf("%s", ledgerInWords(w.snapshot.Ledger))
	}
}

// A ledger that is lost before all tickets are written is rebuilt with what the others have to get.
func TestALostLedgerOfARestore(t *testing.T) {
	for name, known := range map[string]bool{"the backup is known": true, "the backup is not known": false} {
		t.Run(name, func(t *testing.T) {
			w := restoring(t, 1, 1, 1)
			for _, n := range three {
				w.late[n] = true
			}
			for range 30 {
				w.pass()
			}
			had := ticket.Of(w.snapshot.Ledger.Step)
			record := w.snapshot.Nodes[third].Record
			record.Spec.Join, record.Status.Join = nil, nil
			w.snapshot.Nodes[third].Agent.Disk = v1alpha1.DiskEmpty
			backup := w.snapshot.Backup
			if w.snapshot.Ledger = nil; !known {
				w.snapshot.Backup = nil
			}
			if !known {
				if l, missing := rebuilt(t, w); !slices.Equal(missing, []string{third}) {
					t.Errorf("%s, missing %v", ledgerInWords(l), missing)
				}
				w.snapshot.Backup = backup
			}
			l, _ := rebuilt(t, w)
			has := ticket.Of(l.Step)
			if len(had.Sources) != 3 || len(had.Seeds) == 0 || !reflect.DeepEqual(has, had) {
				t.Errorf("rebuilt %+v, it was %+v", has, had)
			}
		})
	}
}
