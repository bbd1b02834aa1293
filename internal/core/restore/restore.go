package restore

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/config/settings"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/words"
)

// place is a rack of a datacenter, by their names inside Cassandra.
type place struct{ datacenter, rack string }

func (p place) String() string { return p.datacenter + "/" + p.rack }

// Sources are the nodes of a backup by those that get their data: in each rack the first of one
// gets that of the first of the other, by the numbers in their names. It is right only where
// Problems has none.
func Sources(wanted []render.Wanted, backup *format.Backup) map[string]*format.Node {
	from := byPlace(backup)
	out := make(map[string]*format.Node, len(wanted))
	for i := range wanted {
		w := &wanted[i]
		p := place{w.Configuration.DatacenterName, w.Configuration.RackName}
		if left := from[p]; len(left) > 0 {
			out[w.Name], from[p] = left[0], left[1:]
		}
	}
	return out
}

func byPlace(backup *format.Backup) map[place][]*format.Node {
	out := map[place][]*format.Node{}
	for i := range backup.Nodes {
		n := &backup.Nodes[i]
		out[place{n.Datacenter, n.Rack}] = append(out[place{n.Datacenter, n.Rack}], n)
	}
	for _, nodes := range out {
		slices.SortFunc(nodes, func(a, b *format.Node) int {
			return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name),
				cmp.Compare(a.HostID, b.HostID))
		})
	}
	return out
}

// Problems are why a cluster cannot be made from a backup: it has an earlier release, writes older
// SSTables, has the name of a ring that may still run, or another shape and what goes with the same
// alone.
func Problems(cluster *v1alpha1.CassandraCluster, wanted []render.Wanted, backup *format.Backup) []string {
	var out []string
	say := func(text string, args ...any) { out = append(out, fmt.Sprintf(text, args...)) }
	restore, name := cluster.Spec.Restore(), render.ClusterName(cluster)
	if string(restore.Source.UID) != backup.Cluster.UID || restore.Backup != "" && restore.Backup != backup.ID {
		say("it says of itself that it is backup %s of the cluster with uid %s", backup.ID, backup.Cluster.UID)
	}
	if name == backup.Cluster.CassandraName && !restore.SourceGone {
		say("the ring that it was taken of is named %q, too: nodes of both would take each other for one ring. Set "+
			"spec.clusterName to another name, or bootstrap.restore.sourceGone if none of its nodes will ever run "+
			"again", name)
	}
	for _, keyspace := range restore.Keyspaces {
		if _, has := backup.Replication[keyspace]; !has {
			has := slices.DeleteFunc(slices.Sorted(maps.Keys(backup.Replication)), func(name string) bool {
				return !ofUsers(name)
			})
			say("it has no keyspace %q of bootstrap.restore.keyspaces; it has %s", keyspace, words.List(has, 8))
		}
	}
	for _, p := range shapeProblems(restore, wanted, backup) {
		say("%s", p)
	}
	for _, n := range backup.Nodes {
		if n.CassandraVersion == "" {
			continue // its agent did not know it yet, and the others say it
		}
		if err := settings.CheckChange(n.CassandraVersion, cluster.Spec.Version); err != nil {
			say("node %s ran Cassandra %s: %s", n.Name, n.CassandraVersion, err)
			break
		}
	}
	if had, has := compatibility(cluster, backup), lowestMode(wanted); had > has {
		say("its ring had %s %s, and this one has %s: Cassandra does not read later SSTables than it writes",
			config.CompatibilityModeSetting, config.CompatibilityModes[had], config.CompatibilityModes[has])
	}
	return out
}

// Shape says where the nodes of a cluster and those of a backup differ. If they do, the rows are
// streamed to their new owners.
func Shape(wanted []render.Wanted, backup *format.Backup) []string {
	if lacks := Lacks(backup); lacks != "" {
		return []string{lacks}
	}
	var out []string
	from, to := byPlace(backup), map[place]int{}
	tokens := map[string]int{} // of each datacenter
	for i := range wanted {
		c := &wanted[i].Configuration
		to[place{c.DatacenterName, c.RackName}]++
		tokens[c.DatacenterName] = int(c.NumTokens)
	}
	places := slices.Concat(slices.Collect(maps.Keys(from)), slices.Collect(maps.Keys(to)))
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.String(), b.String()) })
	for _, p := range slices.Compact(places) {
		if has, gets := len(from[p]), to[p]; has != gets {
			out = append(out, fmt.Sprintf("its rack %s has %s, that of the spec %d", p,
				words.Plural(has, "node"), gets))
			continue
		}
		for _, n := range from[p] {
			if len(n.Tokens) != tokens[p.datacenter] {
				out = append(out, fmt.Sprintf("its node %s has %s, and numTokens of datacenter %s is %d", n.Name,
					words.Plural(len(n.Tokens), "token"), p.datacenter, tokens[p.datacenter]))
				break
			}
		}
	}
	return out
}

// Lacks says which nodes a backup was taken without; empty if it has all.
func Lacks(backup *format.Backup) string {
	if len(backup.LeftOut) == 0 {
		return ""
	}
	var names []string
	for _, n := range backup.LeftOut {
		names = append(names, n.Name)
	}
	return "it was taken without " + words.List(names, 8)
}

// compatibility is the place of the mode that any node of the source had, of those of
// config.CompatibilityModes.
func compatibility(cluster *v1alpha1.CassandraCluster, backup *format.Backup) int {
	source := cluster.DeepCopy()
	if source.Spec = (v1alpha1.CassandraClusterSpec{}); json.Unmarshal(backup.Spec, &source.Spec) != nil {
		return 0 // one that was taken by other means; Cassandra itself refuses what it cannot read
	}
	highest := 0
	for _, w := range render.WantedNodes(source, facts.Install{}) {
		highest = max(highest, config.CompatibilityMode(w.Configuration.CassandraYaml))
	}
	return highest
}

func lowestMode(wanted []render.Wanted) int {
	lowest := len(config.CompatibilityModes) - 1
	for i := range wanted {
		lowest = min(lowest, config.CompatibilityMode(wanted[i].Configuration.CassandraYaml))
	}
	return lowest
}
