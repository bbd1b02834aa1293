package cassandra

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"helenus.io/helenus/internal/core/ring"
)

// saved is the one file that a keyspace has in a backup: of system_schema the schema, of others the
// rows, and of system_auth the roles.
type saved struct {
	Schema []savedKeyspace      `json:"schema,omitempty"`
	Rows   map[string]savedCell `json:"rows,omitempty"`
	Roles  map[string]savedRole `json:"roles,omitempty"`
}

type savedKeyspace struct {
	Name        string         `json:"name"`
	Replication string         `json:"replication"`
	Words       string         `json:"words,omitempty"`
	At          int64          `json:"at"`
	Tables      map[string]int `json:"tables,omitempty"`
}

type savedCell struct {
	Value string `json:"value"`
	At    int64  `json:"at"`
}

type savedRole struct {
	Hash string          `json:"hash"`
	Role json.RawMessage `json:"role"`
	At   int64           `json:"at"`
}

// Saved are the files of a backup of the disk by keyspace. Those of keyspaces without rows are
// there, too, as Cassandra has tables without SSTables.
func (d *Disk) Saved() map[string][]byte {
	files := map[string]saved{}
	var all saved
	for _, name := range d.schema.names() {
		k := d.schema[name]
		all.Schema = append(all.Schema, savedKeyspace{name, k.replication.String(), k.words, k.at, k.tables})
		rows := map[string]savedCell{}
		for key, c := range d.data[name] {
			if c.row() {
				rows[key] = savedCell{c.value, c.at}
			}
		}
		files[name] = saved{Rows: rows}
	}
	files["system_schema"] = all
	roles := map[string]savedRole{}
	for name, r := range d.roles {
		roles[name] = savedRole{r.hash, mustEncode(r.Role), r.at}
	}
	files["system_auth"] = saved{Roles: roles}
	out := map[string][]byte{}
	for name, f := range files {
		out[name] = mustEncode(f)
	}
	return out
}

func mustEncode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("encode what is saved: %v", err)) // texts and numbers alone
	}
	return text
}

// PutFile takes a file of a backup in: JVMs that start from then on have what is in it.
func (d *Disk) PutFile(keyspace, sum string, content []byte) error {
	if keyspace == "system_schema" && content[0] != '{' {
		d.putReplication(content)
		return nil
	}
	var s saved
	if err := json.Unmarshal(content, &s); err != nil {
		return fmt.Errorf("file of keyspace %s: %w", keyspace, err)
	}
	if d.schema == nil {
		d.schema = schema{}
	}
	for _, k := range s.Schema {
		replication, err := ring.ParseReplication(k.Replication)
		if err != nil {
			return fmt.Errorf("file of keyspace %s: %w", keyspace, err)
		}
		d.schema[k.Name] = keyspaceOf(replication, k)
	}
	for key, c := range s.Rows {
		d.set(keyspace, key, cell{value: c.Value, at: c.At})
	}
	for name, r := range s.Roles {
		next := role{hash: r.Hash, at: r.At}
		if err := json.Unmarshal(r.Role, &next.Role); err != nil {
			return fmt.Errorf("file of keyspace %s: %w", keyspace, err)
		}
		d.putRole(name, next)
	}
	d.files[keyspace] = sum
	return nil
}

func keyspaceOf(replication ring.Replication, k savedKeyspace) keyspace {
	return keyspace{replication: replication, words: k.Words, at: k.At, tables: maps.Clone(k.Tables)}
}

// HasFile says that a file of a backup is there.
func (d *Disk) HasFile(keyspace, sum string) bool { return d.files[keyspace] == sum }

// placedKeyspaces are those of which a file of a backup is there, sorted.
func (d *Disk) placedKeyspaces() []string { return slices.Sorted(maps.Keys(d.files)) }
