package repair

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	core "helenus.io/helenus/internal/core/repair"
	"helenus.io/helenus/internal/core/ring"
)

// reaper is the keyspace in which Cassandra Reaper keeps what it does.
const reaper = "reaper_db"

// others says who else repairs the tables; empty if nobody does.
func others(v *assess.View) string {
	if r := v.AnyRing(); r != nil && r.Keyspaces[reaper] != "" {
		return "the keyspace " + reaper + " of Cassandra Reaper is there"
	}
	for _, n := range v.Records() {
		var given struct {
			Enabled bool `json:"enabled"`
		}
		if value, set := n.Record.Spec.Configuration.CassandraYaml["auto_repair"]; set &&
			json.Unmarshal(value.Raw, &given) == nil && given.Enabled {
			return "cassandraYaml has auto_repair.enabled"
		}
	}
	return ""
}

// sceneOf is what is known of the tables; nil while no member tells.
func sceneOf(v *assess.View) *core.Scene {
	view := v.AnyRing()
	told := slices.IndexFunc(v.Members(), func(name string) bool {
		a := v.Nodes[name].CurrentAgent()
		return a != nil && a.Tables != nil
	})
	if view == nil || told < 0 {
		return nil
	}
	s := &core.Scene{Now: v.Now, History: v.Repairs, Policy: policyOf(v), Node: nodesOf(v)}
	s.Fill = func(s *core.Scene) error { return fill(v, view, s) }
	for _, n := range v.Records() {
		if slices.ContainsFunc(procedure.Unfinished(n), func(o v1alpha1.OperationIntent) bool {
			return o.Type == v1alpha1.OperationUpload
		}) {
			s.Uploads = append(s.Uploads, n.Name)
		}
	}
	for _, t := range v.Nodes[v.Members()[told]].CurrentAgent().Tables {
		of := core.TableOf{ID: t.ID, Keyspace: t.Keyspace, Name: t.Name, Replication: view.Keyspaces[t.Keyspace]}
		table := core.Table{TableOf: of, GCGrace: t.GCGrace, Compaction: t.Compaction, Since: madeAt(v, t.ID)}
		replication, err := ring.ParseReplication(of.Replication)
		if err == nil {
			table.Replication = replication.String()
		}
		switch {
		case err == nil && replication.TotalFactor() < 2: // there is nothing to compare
			s.Single = append(s.Single, table)
		case err != nil || slices.Contains(v.Cluster.Spec.Repair.ExcludeTables, of.String()):
			s.LeftOut = append(s.LeftOut, table)
		default:
			s.Tables = append(s.Tables, table)
		}
	}
	if v.RepairMode() == v1alpha1.RepairAutomatic && others(v) == "" {
		lacking(v, view, s)
	}
	return s
}

// toNote are the tables of which it is kept how they are replicated. Who alters a system keyspace
// has it repaired.
func toNote(s *core.Scene) []core.Table {
	return slices.DeleteFunc(slices.Concat(s.Tables, s.LeftOut, s.Single),
		func(t core.Table) bool { return slices.Contains(ring.SystemKeyspaces(), t.Keyspace) })
}

// besideBytes is what a system keyspace counts as, whose size nobody tells.
const besideBytes = 1 << 30

// lacking adds the nodes that must be repaired, but for those of which a person has asked for that,
// and what they hold of keyspaces that are not repaired else.
func lacking(v *assess.View, view *facts.Ring, s *core.Scene) {
	for _, d := range v.Ledger.RepairDue {
		if id := v.Ledger.Members[d.Node]; id != "" && !v.RepairAsked(d.Node) {
			s.Lacking = append(s.Lacking, core.Lacking{HostID: id, Since: d.Since})
		}
	}
	for _, name := range ring.SystemKeyspaces() {
		is := func(t core.Table) bool { return t.Keyspace == name }
		replication, err := ring.ParseReplication(view.Keyspaces[name])
		if len(s.Lacking) > 0 && err == nil && replication.TotalFactor() > 1 && !slices.ContainsFunc(s.Tables, is) &&
			!slices.ContainsFunc(s.LeftOut, is) {
			s.Beside = append(s.Beside, core.Table{Bytes: besideBytes,
				TableOf: core.TableOf{ID: name, Keyspace: name, Replication: replication.String()}})
		}
	}
}

// Progress is how far the schedule is with a node that must be repaired.
type Progress struct {
	// Percent of what the node holds is repaired since; LeftOut are tables that only a person has
	// repaired.
	Percent int
	LeftOut []string
	// Done says that all is repaired.
	Done bool
}

// tablesKnown is within what time a table is known that was made before a node lacked rows.
const tablesKnown = 5 * time.Minute

// Scheduled says by its name how far the schedule is with each node that it repairs; empty where
// people have that done.
func Scheduled(v *assess.View) map[string]Progress {
	if len(v.Ledger.RepairDue) == 0 {
		return nil
	}
	s := sceneOf(v)
	if s == nil {
		return nil
	}
	out := map[string]Progress{}
	for _, l := range s.Lacking {
		name, _, _ := s.Node(l.HostID)
		share, left, err := s.Repaired(l)
		p := Progress{Percent: int(100 * share)}
		for _, t := range left {
			p.LeftOut = append(p.LeftOut, t.String())
		}
		p.Done = err == nil && share == 1 && len(left) == 0 && !v.Now.Before(l.Since.Add(tablesKnown))
		out[name] = p
	}
	return out
}

// fill works out what is needed once something is due.
func fill(v *assess.View, view *facts.Ring, s *core.Scene) error {
	members, err := ring.New(view.Nodes())
	if err != nil {
		return fmt.Errorf("read the ring: %w", err)
	}
	s.Ring = members
	bytes := map[string]int64{}
	for _, name := range v.Members() {
		if a := v.Nodes[name].CurrentAgent(); a != nil {
			for i := range a.Tables {
				bytes[a.Tables[i].ID] += a.Tables[i].Bytes
			}
		}
	}
	for i := range s.Tables {
		t := &s.Tables[i]
		if replication, err := ring.ParseReplication(t.Replication); err == nil {
			t.Bytes = bytes[t.ID] / int64(replication.TotalFactor())
		}
	}
	return nil
}

func policyOf(v *assess.View) core.Policy {
	given := &v.Cluster.Spec.Repair
	p := core.Policy{Target: percent(given.Target, 80), Intensity: percent(given.Intensity, 50)}
	if w := given.Window; w != nil {
		start, _ := time.Parse("15:04", w.Start) // the schema has checked it
		p.Window = &core.Window{Start: start.Sub(start.Truncate(24 * time.Hour)), Duration: w.Duration.Duration,
			Zone: cmp.Or(v.RepairZone, time.UTC)}
	}
	return p
}

func percent(text string, otherwise int) int {
	n, err := strconv.Atoi(strings.TrimSuffix(text, "%"))
	if err != nil || n <= 0 {
		return otherwise
	}
	return n
}

// nodesOf finds members by their host ids.
func nodesOf(v *assess.View) func(string) (string, bool, bool) {
	names := map[string]string{}
	for name, id := range v.Ledger.Members {
		names[id] = name
	}
	return func(hostID string) (string, bool, bool) {
		name := names[hostID]
		up := name != "" && len(v.UpAmong([]string{name})) > 0 && v.Live(name) != nil
		return name, up, up && !v.Ledger.IsPostponed(ledger.RepairTables, name, v.Now)
	}
}

// madeAt is when a table was made: most ids are UUIDs of version 1, which say so. Of any other a
// ring that this cluster has formed says that it was not before the cluster.
func madeAt(v *assess.View, id string) time.Time {
	made := time.Time{}
	if v.Ledger.MadeWith != nil && v.Ledger.Adopted == "" {
		made = v.Cluster.CreationTimestamp.Time
	}
	raw, err := hex.DecodeString(strings.ReplaceAll(id, "-", ""))
	if err != nil || len(raw) != 16 || raw[6]>>4 != 1 {
		return made
	}
	// 100 ns since 15 October 1582
	ticks := int64(raw[6]&0xf)<<56 | int64(raw[7])<<48 | int64(raw[4])<<40 | int64(raw[5])<<32 |
		int64(raw[0])<<24 | int64(raw[1])<<16 | int64(raw[2])<<8 | int64(raw[3])
	const epoch = 122192928000000000
	at := time.Unix((ticks-epoch)/1e7, 0).UTC()
	if at.After(v.Now) || at.Before(made) {
		return made
	}
	return at
}
