package restore

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/core/config"
)

// Schema is what CREATE statements say, as Cassandra writes them: of types and of tables, each by
// keyspace.name as it is in Cassandra.
type Schema map[string]*Definition

// Definition is one type or table.
type Definition struct {
	// Columns, or fields, by name with their types; those that were dropped are among them. Names
	// are in their order.
	Columns map[string]string
	Names   []string
	// Key are the columns of the primary key, and Order how rows of a partition are sorted; both
	// are empty for a type.
	Key, Order string
}

var (
	createStatement = regexp.MustCompile(`^CREATE (?:TYPE|TABLE) (?:IF NOT EXISTS )?(\S+) \($`)
	nameOfColumn    = regexp.MustCompile(`^("(?:[^"]|"")+"|[a-z0-9_]+) (.+)$`)
	columnsOfKey    = regexp.MustCompile(`^PRIMARY KEY \((.+)\)$`)
)

// ParseSchema reads the statements of DESCRIBE, or of the schema.cql of a snapshot: a column or a
// field has a line of its own (SchemaCQLHelper, 4.1 and 5.0).
func ParseSchema(text string) Schema {
	out := Schema{}
	var in *Definition // the statement that is read; within says that its columns are
	within := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if parts := createStatement.FindStringSubmatch(line); parts != nil {
			in, within = &Definition{Columns: map[string]string{}}, true
			out[strings.ReplaceAll(parts[1], `"`, "")] = in
			continue
		}
		if in == nil {
			continue
		}
		if !within {
			in.order(line)
			if strings.HasSuffix(line, ";") {
				in = nil
			}
			continue
		}
		if strings.HasPrefix(line, ")") {
			within = false
			in.order(line)
			if strings.HasSuffix(line, ";") {
				in = nil
			}
			continue
		}
		in.add(strings.TrimSuffix(line, ","))
	}
	return out
}

// order reads a line of the options.
func (d *Definition) order(line string) {
	if _, order, found := strings.Cut(line, "CLUSTERING ORDER BY "); found {
		d.Order = strings.TrimSuffix(order, ";")
	}
}

// add a line of the columns.
func (d *Definition) add(line string) {
	if parts := columnsOfKey.FindStringSubmatch(line); parts != nil {
		d.Key = parts[1]
		return
	}
	parts := nameOfColumn.FindStringSubmatch(line)
	if parts == nil {
		return
	}
	of, _, _ := strings.Cut(parts[2], " MASKED WITH ")
	of, key := strings.CutSuffix(of, " PRIMARY KEY")
	if key {
		d.Key = parts[1]
	}
	d.Columns[parts[1]], d.Names = of, append(d.Names, parts[1])
}

// TableProblem is why a table cannot hold what another one had, by their schemas; empty if it can.
// Cassandra reads rows by the types that a table has now: one of another type would not be read
// again, and neither would the rows beside it.
func TableProblem(table v1alpha1.RestoredTable, had, has Schema) string {
	from, to := had[table.From], has[table.Target()]
	if from == nil {
		return fmt.Sprintf("tables: the backup does not say which columns %s had: it was taken by an earlier release "+
			"of Helenus", table.From)
	}
	if to == nil {
		return fmt.Sprintf("tables: there is no table %s: create it first: %s", table.Target(),
			from.create(table.Target()))
	}
	for _, name := range from.Names {
		is, known := to.Columns[name]
		switch was := from.Columns[name]; {
		case was == "counter":
			return fmt.Sprintf("tables: %s has counter %s: what was counted since the backup would not be taken back, "+
				"and counts of another ring would be added", table.From, name)
		case !known:
			return fmt.Sprintf("tables: %s has no column %s, which was %s in the backup: add it, or create the table "+
				"as it was there", table.Target(), name, was)
		case is != was:
			return fmt.Sprintf("tables: column %s of %s is %s, and was %s in the backup: only the same type holds it",
				name, table.Target(), is, was)
		}
	}
	if was, is := from.key(), to.key(); was != is {
		return fmt.Sprintf("tables: the primary key of %s is %s, and was %s in the backup: only the same one holds it",
			table.Target(), is, was)
	}
	return typeProblem(table, had, has)
}

var viewStatement = regexp.MustCompile(`(?s)CREATE MATERIALIZED VIEW (?:IF NOT EXISTS )?(\S+) AS\s.*?\sFROM (\S+)\s`)

// ViewProblem is why a table cannot be truncated, by the statements of its keyspace; empty if it
// can. Cassandra truncates the views of a table, too, and a snapshot of the table has none of them.
func ViewProblem(table, schema string) string {
	var views []string
	for _, parts := range viewStatement.FindAllStringSubmatch(strings.ReplaceAll(schema, `"`, ""), -1) {
		if parts[2] == table {
			views = append(views, parts[1])
		}
	}
	if len(views) == 0 {
		return ""
	}
	return fmt.Sprintf("tables: %s has views, and is not replaced: drop %s first, and create them again later; or "+
		"restore into another table", table, strings.Join(views, " and "))
}

// typeProblem compares the types that are the users': one may have got more fields since.
func typeProblem(table v1alpha1.RestoredTable, had, has Schema) string {
	was, _, _ := strings.Cut(table.From, ".")
	is, _, _ := strings.Cut(table.Target(), ".")
	for _, name := range slices.Sorted(maps.Keys(had)) {
		of, ours := strings.CutPrefix(name, was+".")
		from, to := had[name], has[is+"."+of]
		if !ours || from.Key != "" {
			continue
		}
		fields := from.describe(len(from.Names))
		if to == nil {
			return fmt.Sprintf("tables: keyspace %s has no type %s, which was (%s) in the backup: create it first", is,
				of, fields)
		}
		if got := to.describe(len(from.Names)); got != fields {
			return fmt.Sprintf("tables: type %s.%s begins with (%s), and was (%s) in the backup: only the same one "+
				"holds it", is, of, got, fields)
		}
	}
	return ""
}

// key of a table with the order of its columns. What has no order is sorted upwards.
func (d *Definition) key() string {
	if order := strings.ReplaceAll(d.Order, " ASC", ""); strings.Contains(order, " DESC") {
		return "(" + d.Key + ") in the order " + order
	}
	return "(" + d.Key + ")"
}

// create is the statement that creates such a table under a name.
func (d *Definition) create(name string) string {
	text := fmt.Sprintf("CREATE TABLE %s (%s, PRIMARY KEY (%s))", name, d.describe(len(d.Names)), d.Key)
	if d.Order != "" {
		text += " WITH CLUSTERING ORDER BY " + d.Order
	}
	return text
}

// describe the first columns.
func (d *Definition) describe(most int) string {
	var out []string
	for _, name := range d.Names[:min(most, len(d.Names))] {
		out = append(out, name+" "+d.Columns[name])
	}
	return strings.Join(out, ", ")
}

// FormatProblem is why a node of a configuration cannot read an SSTable of a backup, by its name;
// empty if it can. Cassandra passes over what it cannot read, and says nothing.
func FormatProblem(c *v1alpha1.NodeConfiguration, name string) string {
	version, _, _ := strings.Cut(path.Base(name), "-") // those of an index are in a directory
	if strings.HasPrefix(version, "m") || strings.HasPrefix(version, "n") {
		return "" // of 3.0 to 4.1
	}
	if config.SSTables(c) == config.OldestSSTables {
		return fmt.Sprintf("backup: it has SSTables of version %s, and this ring reads none later than %s: only one "+
			"of Cassandra 5.0 whose %s is not %s does", version, config.OldestSSTables, config.CompatibilityModeSetting,
			config.CompatibilityModes[0])
	}
	return ""
}

// Share are the nodes of a backup whose files a member takes: its own, and of the others as many as
// each. It is the same on every node.
func Share(nodes []format.Node, members []string, own string) []string {
	members = slices.Sorted(slices.Values(members))
	var out, others []string
	for i := range nodes {
		switch id := nodes[i].HostID; {
		case id == own:
			out = append(out, id)
		case !slices.Contains(members, id):
			others = append(others, id)
		}
	}
	slices.Sort(others)
	for i, id := range others {
		if members[i%len(members)] == own {
			out = append(out, id)
		}
	}
	return out
}
