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

	"helenus.io/helenus/internal/core/assess"
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
	for _, t := range v.Nodes[v.Members()[told]].CurrentAgent().Tables {
		of := core.TableOf{ID: t.ID, Keyspace: t.Keyspace, Name: t.Name}
		replication, err := ring.ParseReplication(view.Keyspaces[t.Keyspace])
		if err != nil || replication.TotalFactor() < 2 || slices.Contains(v.Cluster.Spec.Repair.ExcludeTables, of.String()) {
			continue
		}
		of.Replication = replication.String()
		s.Tables = append(s.Tables, core.Table{TableOf: of, GCGrace: t.GCGrace, Compaction: t.Compaction,
			Since: madeAt(v, t.ID)})
	}
	return s
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
