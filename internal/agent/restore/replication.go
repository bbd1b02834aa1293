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

// replicate puts rows beside those of system_schema.keyspaces, by which keyspaces have replicas in
// the datacenters of a ring of another shape from its first start. They are the same on every node,
// as schemas have to be.
func replicate(d Disk, m *format.Manifest, datacenters map[string]int32) error {
	i := slices.IndexFunc(m.Tables, func(t format.Table) bool { return t.Keyspace == schema && t.Name == "keyspaces" })
	if i < 0 {
		return errors.New("the backup has no schema")
	}
	to, problems := restore.Replicated(m.Replication, datacenters)
	if len(problems) > 0 {
		return errors.New(problems[0])
	}
	table, number := &m.Tables[i], firstName
	for _, keyspace := range slices.Sorted(maps.Keys(to)) {
		name := ""
		for had := true; had; number++ {
			name = fmt.Sprintf("nb-%d-big", number)
			had = slices.ContainsFunc(table.SSTables, func(s format.SSTable) bool { return s.Name == name })
		}
		files, err := superuser.Replication(keyspace, to[keyspace], m.TakenAt.Add(after).UnixMicro())
		if err != nil {
			return err //nolint:wrapcheck // it says what it is about
		}
		for _, component := range slices.Sorted(maps.Keys(files)) {
			content := files[component]
			sum := sha256.Sum256(content)
			if err := d.PlaceFile(schema, table.Directory(), name+"-"+component, int64(len(content)),
				hex.EncodeToString(sum[:]), bytes.NewReader(content)); err != nil {
				return err //nolint:wrapcheck // who asks says of what
			}
		}
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
	return keyspace != "system"
}
