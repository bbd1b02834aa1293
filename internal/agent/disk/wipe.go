package disk

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
)

// ownTables are keyspaces that say who a node is and what the schema is. Only in the first of them
// are there tables with rows that came from others: of unfinished lightweight transactions and
// batches.
var (
	ownTables     = []string{"system", "system_schema"}
	rowsOfClients = []string{"paxos", "batches"}
)

// WipeRows removes the rows of all keyspaces that the ring replicates, the commit log and the hints
// from a volume, and leaves who the node is. It is durable when it returns, and harmless to do
// again. The commit log is lost with it, so that only what Cassandra has flushed of itself counts:
// host id, tokens, the generation of its gossip, and how far it has joined are (SystemKeyspace, 4.1
// and 5.0).
func WipeRows(volume *os.Root, layout Layout) error {
	remove := func(dir string, which func(name string) bool) error {
		entries, err := readDir(volume.FS(), dir)
		if err != nil || len(entries) == 0 {
			return err
		}
		for _, e := range entries {
			if which(e.Name()) {
				if err := volume.RemoveAll(path.Join(dir, e.Name())); err != nil {
					return err
				}
			}
		}
		opened, err := volume.Open(dir)
		if err != nil {
			return err
		}
		return errors.Join(opened.Sync(), opened.Close())
	}
	all := func(string) bool { return true }
	// The hashes of files go first: names are used again.
	errs := []error{remove(ownDir, func(name string) bool { return strings.HasPrefix(name, hashesFile) })}
	for _, dir := range layout.Data {
		errs = append(errs,
			remove(dir, func(name string) bool { return !slices.Contains(ownTables, name) }),
			remove(path.Join(dir, ownTables[0]), func(table string) bool {
				return slices.ContainsFunc(rowsOfClients, func(of string) bool { return strings.HasPrefix(table, of) })
			}))
	}
	for _, dir := range []string{layout.CommitLog, "hints", "saved_caches", "cdc_raw"} {
		if dir != "" {
			errs = append(errs, remove(dir, all))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("wipe the rows of an unfinished join: %w", err)
	}
	return nil
}
