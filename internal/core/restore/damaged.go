package restore

import (
	"maps"
	"slices"
	"strconv"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/core/words"
)

const (
	// longestFile and mostCovering are bounds of the schema.
	longestFile  = 253
	mostCovering = 16
)

// damage is what is wrong with a backup.
type damage struct {
	names  map[string]string
	ring   *ring.Ring
	placed map[string]ring.Placement // by keyspace
	// harmed are the nodes, by host id, of which files of a keyspace or of a table are damaged, by
	// the name of these; by an empty one those whose manifest is.
	harmed map[string]map[string]bool
}

// Damaged are the tables of nodes of which files are missing or damaged, with the nodes of the
// backup that have replicas of the same ranges, all files of which were found. It names so many at
// most.
func Damaged(b *format.Backup, files []facts.DamagedFile) []v1alpha1.DamagedTable {
	d := newDamage(b, files)
	type key struct{ host, table string }
	at := map[key]int{}
	var out []v1alpha1.DamagedTable
	for _, f := range files {
		table := f.Keyspace
		if table != "" {
			table += "." + f.Table
		}
		k := key{f.HostID, table}
		i, known := at[k]
		if !known && len(out) == v1alpha1.MaxDamagedTables {
			continue
		}
		if !known {
			i, at[k] = len(out), len(out)
			out = append(out, v1alpha1.DamagedTable{Node: f.Node, Table: table})
			d.cover(&out[i], f)
		}
		if len(out[i].Files) < v1alpha1.MaxDamagedFiles {
			out[i].Files = append(out[i].Files, words.Shorten(f.File+" "+f.Why, longestFile))
		}
	}
	return out
}

func newDamage(b *format.Backup, files []facts.DamagedFile) *damage {
	d := &damage{names: map[string]string{}, placed: map[string]ring.Placement{},
		harmed: map[string]map[string]bool{}}
	var nodes []ring.Node
	for _, n := range b.Nodes {
		d.names[n.HostID] = n.Name
		of := ring.Node{ID: n.HostID, Datacenter: n.Datacenter, Rack: n.Rack}
		for _, text := range n.Tokens {
			if token, err := strconv.ParseInt(text, 10, 64); err == nil {
				of.Tokens = append(of.Tokens, ring.Token(token))
			}
		}
		nodes = append(nodes, of)
	}
	var err error
	if d.ring, err = ring.New(nodes); err == nil {
		for keyspace, options := range b.Replication {
			options = maps.Clone(options)
			class := options["class"]
			delete(options, "class")
			if replication, err := ring.OfOptions(class, options); err == nil {
				d.placed[keyspace] = d.ring.Place(replication)
			}
		}
	}
	for _, f := range files {
		of := []string{""}
		if f.Keyspace != "" {
			of = []string{f.Keyspace, f.Keyspace + "." + f.Table}
		}
		for _, name := range of {
			if d.harmed[name] == nil {
				d.harmed[name] = map[string]bool{}
			}
			d.harmed[name][f.HostID] = true
		}
	}
	return d
}

// cover finds who else has the ranges of a table of a node; of all its keyspaces without a
// manifest.
func (d *damage) cover(t *v1alpha1.DamagedTable, f facts.DamagedFile) {
	by := map[string]bool{}
	for keyspace, placed := range d.placed {
		of := t.Table
		if f.Keyspace == "" {
			of = keyspace
		} else if f.Keyspace != keyspace {
			continue
		}
		for i := range placed.Len() {
			held, covered := false, false
			for _, replica := range placed.Replicas(i) {
				switch id := placed.Node(replica); {
				case id == f.HostID:
					held = true
				case !d.harmed[""][id] && !d.harmed[of][id]:
					covered = true
				}
			}
			if !held {
				continue
			}
			t.Ranges++
			if !covered {
				t.Uncovered++
				continue
			}
			for _, replica := range placed.Replicas(i) {
				if id := placed.Node(replica); id != f.HostID && !d.harmed[""][id] && !d.harmed[of][id] {
					by[d.names[id]] = true
				}
			}
		}
	}
	all := slices.Sorted(maps.Keys(by))
	t.CoveredBy = all[:min(len(all), mostCovering)]
}
