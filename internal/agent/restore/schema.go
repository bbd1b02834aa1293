package restore

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/superuser"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/core/restore"
)

const (
	schema = "system_schema"
	// firstName is the number of the first SSTable that is written beside those of the backup.
	firstName = 1_000_000_000
	// after is how much later than the snapshot rows count as written that replace those in it: no
	// clock of a node is ahead by as much, and nobody alters a ring earlier that is made from it.
	after = 10 * time.Second
)

// editSchema puts SSTables beside those of system_schema, which are the same on every node, as
// schemas have to be: by one of them a keyspace has replicas in the datacenters of a ring of
// another shape from its first start; by others one that does not come back is deleted.
func editSchema(d Disk, m *format.Manifest, from *v1alpha1.DiskRestore) error {
	at, number := m.TakenAt.Add(after).UnixMicro(), firstName
	add := func(table *format.Table, files map[string][]byte, err error) error {
		if err != nil {
			return err
		}
		name := ""
		for had := true; had; number++ {
			name = fmt.Sprintf("nb-%d-big", number)
			had = slices.ContainsFunc(table.SSTables, func(s format.SSTable) bool { return s.Name == name })
		}
		for _, component := range slices.Sorted(maps.Keys(files)) {
			content := files[component]
			sum := sha256.Sum256(content)
			if err := d.PlaceFile(schema, table.Directory(), name+"-"+component, int64(len(content)),
				hex.EncodeToString(sum[:]), bytes.NewReader(content)); err != nil {
				return err //nolint:wrapcheck // who asks says of what
			}
		}
		return nil
	}
	kept, to, found := restore.Kept(m.Replication, from.Keyspaces), map[string]map[string]string{}, false
	if len(from.Datacenters) > 0 {
		var problems []string
		if to, problems = restore.Replicated(kept, from.Datacenters); len(problems) > 0 {
			return errors.New(problems[0])
		}
	}
	for i := range m.Tables {
		table := &m.Tables[i]
		if table.Keyspace != schema || len(table.SSTables) == 0 {
			continue
		}
		for _, keyspace := range slices.Sorted(maps.Keys(m.Replication)) {
			if _, comes := kept[keyspace]; !comes {
				files, err := superuser.Deletion(keyspace, at)
				if err := add(table, files, err); err != nil {
					return err
				}
			}
		}
		if table.Name != "keyspaces" {
			continue
		}
		found = true
		for _, keyspace := range slices.Sorted(maps.Keys(to)) {
			files, err := superuser.Replication(keyspace, to[keyspace], at)
			if err := add(table, files, err); err != nil {
				return err
			}
		}
	}
	if !found && (len(to) > 0 || len(kept) < len(m.Replication)) {
		return errors.New("the backup has no schema")
	}
	return nil
}

// takes says that what a keyspace had goes onto a disk by its files: of a ring of another shape the
// schema alone.
func takes(from *v1alpha1.DiskRestore, keyspace string) bool {
	switch {
	case len(from.Datacenters) > 0:
		return keyspace == schema
	case keyspace == superuser.Keyspace:
		return from.Roles == v1alpha1.RolesRestore
	}
	return keyspace != "system" && restore.Wanted(keyspace, from.Keyspaces)
}
