package restore

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

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
	// without begins what LeaveOut says.
	without = "; without what "
)

// damage is what is wrong with a backup.
type damage struct {
	names, datacenters map[string]string

	placed map[string]placed // by keyspace
	// harmed are the nodes, by host id, of which files of a keyspace or of a table are damaged, by
	// the name of these; by an empty one those of which nothing can be read: whose manifest is
	// damaged, or which the backup was taken without.
	harmed map[string]map[string]bool
}

// placed is who has the copies of each range. Apart: a quorum is of each datacenter, else of all.
type placed struct {
	ring.Placement
	apart bool
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

// LeaveOut says, for the end of a message, without which files rows are restored: all those that
// some nodes had of a table, since one of them is damaged. The error is why they are needed: of
// each range no more copies may be missing in a datacenter than a quorum there can do without, so
// that every write that was acknowledged by a quorum is on one that is left.
func LeaveOut(b *format.Backup, files []facts.DamagedFile) (string, error) {
	d := newDamage(b, files)
	are := "files of %s are damaged"
	if len(b.LeftOut) > 0 {
		are += " or not in the backup"
	}
	var out []string
	for _, f := range files {
		table := f.Keyspace + "." + f.Table
		placed, known := d.placed[f.Keyspace]
		if !known || placed.Len() == 0 || d.names[f.HostID] == "" {
			return "", fmt.Errorf("the backup does not say who had copies of what node %s had of %s", f.HostID, table)
		}
		if err := d.spares(f.Keyspace, table, are); err != nil {
			return "", err
		}
		out = append(out, d.names[f.HostID]+" had of "+table)
	}
	return fmt.Sprintf("%s%s: files of it are damaged, and others have a quorum of each range", without,
		words.List(out, 8)), nil
}

// Uncopied is why keyspaces cannot be backed up without the copies of some members, by their host
// ids; nil if they can, by the rule of LeaveOut. The ring is of those that have names, as a view
// has them, or as they were when they left it.
func Uncopied(view *facts.Ring, left []v1alpha1.LeftOutNode, names map[string]string, without []string,
	keyspaces []ring.Keyspace) error {
	d, alike := &damage{names: names, harmed: map[string]map[string]bool{"": {}}}, map[string]bool{}
	keyspaces = slices.DeleteFunc(slices.Clone(keyspaces), func(k ring.Keyspace) bool {
		known := alike[k.Replication.String()]
		alike[k.Replication.String()] = true
		return known
	})
	known := map[string]bool{}
	nodes := slices.DeleteFunc(view.Nodes(), func(n ring.Node) bool {
		known[n.ID] = true
		return names[n.ID] == ""
	})
	for _, n := range left {
		if !known[n.HostID] {
			nodes = append(nodes, ring.Node{ID: n.HostID, Datacenter: n.Datacenter, Rack: n.Rack,
				Tokens: tokens(n.Tokens)})
		}
	}
	if err := d.place(nodes, keyspaces); err != nil {
		return err
	}
	for _, id := range without {
		if d.datacenters[id] == "" {
			return fmt.Errorf("the ring does not say which ranges node %s has", names[id])
		}
		d.harmed[""][id] = true
	}
	for _, k := range keyspaces {
		if err := d.spares(k.Name, "keyspace "+k.Name, "those of %s do not count"); err != nil {
			return err
		}
	}
	return nil
}

// LeavesOut is why keyspaces of a backup are not covered without the nodes that it leaves out; nil
// if they are.
func LeavesOut(b *format.Backup, keyspaces []string) error {
	d := newDamage(b, nil)
	for _, name := range keyspaces {
		_, known := d.placed[name]
		switch {
		case b.Replication[name] == nil: // each node has its own
			continue
		case !known:
			return fmt.Errorf("the backup does not say which nodes have copies of keyspace %s", name)
		}
		if err := d.spares(name, "keyspace "+name, "those of %s do not count"); err != nil {
			return err
		}
	}
	return nil
}

// spares is an error if of a range of a keyspace too many copies of what is asked for are missing.
// Are says, about nodes, what is wrong with these.
func (d *damage) spares(keyspace, what, are string) error {
	placed := d.placed[keyspace]
	for i := range placed.Len() {
		copies, missing := map[string]int{}, map[string][]string{} // by datacenter
		for _, replica := range placed.Replicas(i) {
			id, dc := placed.Node(replica), ""
			if placed.apart {
				dc = " in datacenter " + d.datacenters[id]
			}
			if copies[dc]++; d.harmed[""][id] || d.harmed[what][id] {
				missing[dc] = append(missing[dc], d.names[id])
			}
		}
		for _, dc := range slices.Sorted(maps.Keys(missing)) {
			of := missing[dc]
			if most := (copies[dc] - 1) / 2; len(of) > most {
				slices.Sort(of)
				return fmt.Errorf("range %s of %s has %s%s, and "+are+": %d may be left out (RF - quorum), so that "+
					"each write that a quorum has acknowledged is on another", placed.Range(i), what,
					words.Plural(copies[dc], "replica"), dc, strings.Join(of, ", "), most)
			}
		}
	}
	return nil
}

// Without is the end of what a node says that has left out such files; empty if none has.
func Without(message string) string {
	if i := strings.Index(message, without); i >= 0 {
		return message[i:]
	}
	return ""
}

func newDamage(b *format.Backup, files []facts.DamagedFile) *damage {
	d := &damage{names: map[string]string{}, harmed: map[string]map[string]bool{"": {}}}
	var nodes []ring.Node
	for _, n := range slices.Concat(b.Nodes, b.LeftOut) {
		d.names[n.HostID] = n.Name
		nodes = append(nodes, ring.Node{ID: n.HostID, Datacenter: n.Datacenter, Rack: n.Rack, Tokens: tokens(n.Tokens)})
	}
	for _, n := range b.LeftOut {
		d.harmed[""][n.HostID] = true
	}
	var keyspaces []ring.Keyspace
	for name, options := range b.Replication {
		options = maps.Clone(options)
		strategy := options[class]
		delete(options, class)
		if replication, err := ring.OfOptions(strategy, options); err == nil {
			keyspaces = append(keyspaces, ring.Keyspace{Name: name, Replication: replication})
		}
	}
	_ = d.place(nodes, keyspaces) // then it is not known which nodes have copies
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

func tokens(of []string) (out []ring.Token) {
	for _, text := range of {
		if token, err := strconv.ParseInt(text, 10, 64); err == nil {
			out = append(out, ring.Token(token))
		}
	}
	return out
}

// place the copies of keyspaces on nodes.
func (d *damage) place(nodes []ring.Node, keyspaces []ring.Keyspace) error {
	d.datacenters, d.placed = map[string]string{}, map[string]placed{}
	for _, n := range nodes {
		d.datacenters[n.ID] = n.Datacenter
	}
	all, err := ring.New(nodes)
	if err != nil {
		return fmt.Errorf("read the ring: %w", err)
	}
	for _, k := range keyspaces {
		d.placed[k.Name] = placed{all.Place(k.Replication), k.Replication.Strategy() == ring.NetworkTopologyStrategy}
	}
	return nil
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
