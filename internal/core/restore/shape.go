package restore

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/ring"
)

const (
	strategies = "org.apache.cassandra.locator."
	class      = "class"
)

// Datacenters are the numbers of the nodes of a cluster by datacenter, as Cassandra names it.
func Datacenters(wanted []render.Wanted) map[string]int32 {
	out := map[string]int32{}
	for i := range wanted {
		out[wanted[i].Configuration.DatacenterName]++
	}
	return out
}

// Changes are what is another than in a backup of another shape, of which some keyspaces of users
// come back, or all; for people.
func Changes(wanted []render.Wanted, backup *format.Backup, keyspaces []string) []string {
	out := Shape(wanted, backup)[:1]
	to, _ := Replicated(Kept(backup.Replication, keyspaces), Datacenters(wanted))
	for _, keyspace := range slices.Sorted(maps.Keys(to)) {
		if was, is := inWords(backup.Replication[keyspace]), inWords(to[keyspace]); was != is &&
			!slices.Contains(ring.SystemKeyspaces(), keyspace) {
			out = append(out, fmt.Sprintf("keyspace %s gets %s instead of %s", keyspace, is, was))
		}
	}
	return out
}

// shapeProblems are why a ring of another shape than that of a backup cannot be made from it.
func shapeProblems(r *v1alpha1.Restore, wanted []render.Wanted, backup *format.Backup) []string {
	differ := Shape(wanted, backup)
	if len(differ) == 0 {
		return nil
	}
	_, out := Replicated(Kept(backup.Replication, r.Keyspaces), Datacenters(wanted))
	if len(backup.Nodes) == 0 {
		out = append(out, "it has no nodes")
	}
	if r.PointInTime != nil {
		out = append(out, "bootstrap.restore.pointInTime needs the shape of the backup, since each node replays the "+
			"commit log of one: "+differ[0])
	}
	if r.Roles == v1alpha1.RolesRestore {
		out = append(out, "bootstrap.restore.roles Restore needs the shape of the backup: "+differ[0])
	}
	return out
}

// Replicated is how the keyspaces of a backup are replicated in datacenters with so many nodes, as
// system_schema.keyspaces has it: those of users as in the backup, with fewer nodes their number;
// in a datacenter that the backup has not, if it is the only one, as in the largest of the backup.
// Those of Cassandra begin with a replica in each. Problems are those of keyspaces for which that
// does not work.
func Replicated(had map[string]map[string]string, datacenters map[string]int32) (to map[string]map[string]string,
	problems []string) {
	to = map[string]map[string]string{}
	for _, keyspace := range slices.Sorted(maps.Keys(had)) {
		factors, err := factorsOf(had[keyspace], datacenters)
		if slices.Contains(ring.SystemKeyspaces(), keyspace) {
			factors, err = map[string]int32{}, nil
			for dc := range datacenters {
				factors[dc] = 1
			}
		}
		if err != nil {
			problems = append(problems, fmt.Sprintf("keyspace %s %s", keyspace, err))
			continue
		}
		to[keyspace] = map[string]string{class: strategies + string(ring.NetworkTopologyStrategy)}
		for dc, n := range factors {
			to[keyspace][dc] = strconv.Itoa(int(min(n, datacenters[dc])))
		}
	}
	return to, problems
}

// factorsOf are the numbers of replicas by datacenter.
func factorsOf(had map[string]string, datacenters map[string]int32) (map[string]int32, error) {
	strategy := strings.TrimPrefix(had[class], strategies)
	if strategy != string(ring.NetworkTopologyStrategy) && strategy != string(ring.SimpleStrategy) {
		return nil, fmt.Errorf("is replicated by %s: only NetworkTopologyStrategy and SimpleStrategy are known to fit "+
			"another shape than that of the backup", had[class])
	}
	out, most := map[string]int32{}, int32(0)
	for dc, text := range had {
		if dc == class {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("has %s replicas in %s, which is no whole number: it fits the shape of the backup "+
				"alone", text, dc)
		}
		most = max(most, int32(n))
		if datacenters[dc] > 0 && n > 0 && strategy == string(ring.NetworkTopologyStrategy) {
			out[dc] = int32(n)
		}
	}
	if len(out) > 0 || most == 0 {
		return out, nil
	}
	names := slices.Sorted(maps.Keys(datacenters))
	if len(names) > 1 {
		return nil, fmt.Errorf("has %s in the backup, and this ring the datacenters %s: set datacenterName of one to "+
			"a name that it had, or begin with one datacenter, which gets the replicas, and add the others later",
			inWords(had), strings.Join(names, ", "))
	}
	return map[string]int32{names[0]: most}, nil
}

func inWords(options map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(options)) {
		if name != class {
			parts = append(parts, name+": "+options[name])
		}
	}
	return strings.TrimPrefix(options[class], strategies) + " {" + strings.Join(parts, ", ") + "}"
}

// Tables of users in what a node had, of some keyspaces or of all, but views: these get their rows
// by their tables.
func Tables(m *format.Manifest, keyspaces []string) []*format.Table {
	var out []*format.Table
	for i := range m.Tables {
		t := &m.Tables[i]
		if ofUsers(t.Keyspace) && Wanted(t.Keyspace, keyspaces) &&
			!strings.Contains(t.Schema, "CREATE MATERIALIZED VIEW ") {
			out = append(out, t)
		}
	}
	return out
}

// Wanted says that a keyspace comes back where some of those of users do, or all: Cassandra's own
// always do.
func Wanted(keyspace string, keyspaces []string) bool {
	return len(keyspaces) == 0 || !ofUsers(keyspace) || slices.Contains(keyspaces, keyspace)
}

// Kept is the replication of those keyspaces of a backup that come back.
func Kept(had map[string]map[string]string, keyspaces []string) map[string]map[string]string {
	had = maps.Clone(had)
	maps.DeleteFunc(had, func(name string, _ map[string]string) bool { return !Wanted(name, keyspaces) })
	return had
}

// ofUsers says that a keyspace of a backup is none of Cassandra's own.
func ofUsers(keyspace string) bool {
	return keyspace != "system" && keyspace != "system_schema" && !slices.Contains(ring.SystemKeyspaces(), keyspace)
}

// Same says that a keyspace is replicated as it is to be.
func Same(to map[string]string, strategy string, options map[string]string) bool {
	has := maps.Clone(options)
	has[class] = strategies + strategy
	return maps.Equal(to, has)
}
