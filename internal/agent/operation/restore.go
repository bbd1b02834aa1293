package operation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/disk"
	birth "helenus.io/helenus/internal/agent/restore"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/backup/sweep"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/restore"
	"helenus.io/helenus/internal/core/ring"
)

// restoring is a StageTables or a LoadTables under way.
type restoring struct {
	*task
	from store.Store
	view *facts.Ring
	// manifests whose files this node loads; one at least is there to look at.
	manifests []*format.Manifest
	idle      bool
	backup    *format.Backup

	mu        sync.Mutex
	done, all int64
	// damaged are what is wrong with files, by the keys that say what is left out.
	damaged map[string]error
}

// believed is how often a file has another content until it counts as damaged.
const believed = 2

// staged is a file that is to be there, or a pack whose files are. Path is that of its SSTable.
type staged struct {
	format.File
	path string
	// leftOut is the key that says that the table of its node is left out.
	leftOut string
}

// stageTables downloads what this node is to load: the files of tables as some nodes of the backup
// had them. All that can be wrong with it is looked for before.
func stageTables(ctx context.Context, t *task) (text string, err error) {
	r, err := t.restoring(ctx)
	if err != nil {
		return "", err
	}
	staging, err := t.Staging(t.arguments.Restore.Tag)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, staging.Close()) }()
	if err := staging.ClearOthers(); err != nil {
		return "", err
	}
	files, err := r.files()
	if err != nil {
		return "", err
	}
	loads := int64(0)
	for _, f := range files {
		loads += f.Size
	}
	missing := slices.DeleteFunc(slices.Clone(files), func(f staged) bool {
		return !slices.ContainsFunc(f.Unpacked(), func(c format.File) bool { return !f.in(staging, c) })
	})
	for _, f := range missing {
		r.all += f.Size
	}
	if err := r.room(loads); err != nil {
		return "", err
	}
	err = t.together(ctx, 1, len(missing), func(ctx context.Context, i int) error {
		f := missing[i]
		r.mu.Lock()
		damaged := r.damaged[f.leftOut] != nil
		r.mu.Unlock()
		var err error
		for tries := 0; !damaged && (tries == 0 || tries < believed && birth.IsDamage(err)); tries++ {
			err = r.download(ctx, staging, f)
		}
		if err := r.noteDamage(ctx, f.File, err); err != nil {
			return err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if damaged = damaged || birth.IsDamage(err); damaged {
			r.damaged[f.leftOut] = cmp.Or(r.damaged[f.leftOut], err)
		} else if err != nil {
			return err
		}
		r.done += f.Size
		t.Say(int(r.done>>10), int(max(1, r.all>>10)), fmt.Sprintf("%d of %d bytes are downloaded", r.done, r.all))
		return nil
	})
	if err != nil {
		return "", err
	}
	leftOut, without, err := r.leaveOut(ctx)
	if err != nil {
		return "", err
	}
	for _, why := range r.damaged {
		without += "; " + why.Error()
	}
	if err := staging.Complete(); err != nil {
		return "", err
	}
	tables, err := staging.Tables()
	for _, dir := range tables { // nobody loads before this has succeeded
		if slices.ContainsFunc(files, func(f staged) bool {
			return leftOut[f.leftOut] && strings.HasSuffix(dir, "/"+path.Dir(f.path))
		}) {
			err = errors.Join(err, staging.Loaded(dir))
		}
	}
	return fmt.Sprintf("%d bytes are downloaded and checked%s", loads, without), err
}

// in says that a component is there.
func (f *staged) in(staging Staging, c format.File) bool {
	return staging.HasFile(f.path+"-"+c.Name, c.Size, c.SHA256)
}

func (r *restoring) download(ctx context.Context, to Staging, f staged) error {
	err := birth.Fetch(ctx, r.from, string(r.arguments.Restore.Cluster), f.File,
		func(c format.File) bool { return f.in(to, c) },
		func(c format.File, content io.Reader) error {
			return to.PlaceFile(f.path+"-"+c.Name, c.Size, c.SHA256, cancellable{content, r.task})
		})
	if err != nil {
		return fmt.Errorf("download %s-%s: %w", f.path, f.Name, err)
	}
	return nil
}

// noteDamage says in the store that the content of a file is another one, as a verification does:
// the next backup of who has the right one puts it again. One that is missing is looked for anyway.
func (r *restoring) noteDamage(ctx context.Context, f format.File, why error) error {
	if !errors.Is(why, disk.ErrContent) && !errors.Is(why, store.ErrDamaged) {
		return nil
	}
	key := format.DamagedKey(string(r.arguments.Restore.Cluster), f.BlobName())
	err := r.from.Put(ctx, key, strings.NewReader(""), 0)
	if errors.Is(err, store.ErrExists) {
		return nil
	}
	return err //nolint:wrapcheck // it says what it is about
}

// leaveOut all that a node had of a table of which a file is damaged, if the others have enough: an
// SSTable alone may have deletions of rows in another, which the other nodes have forgotten with
// the rows. What is left out is said in the store before it is looked there what others leave out:
// of two nodes that leave out too much together, one at least sees it.
func (r *restoring) leaveOut(ctx context.Context) (all map[string]bool, text string, err error) {
	var found error
	for key, why := range r.damaged {
		found = errors.Join(found, why)
		if err := r.from.Put(ctx, key, strings.NewReader(""), 0); err != nil && !errors.Is(err, store.ErrExists) {
			return nil, "", errors.Join(found, err)
		}
	}
	if all, text, err = r.leftOut(ctx); err == nil {
		return all, text, nil
	}
	for key := range all {
		if path.Base(path.Dir(path.Dir(key))) == r.view.HostID { // it is found again while it is so
			err = errors.Join(err, r.from.Delete(ctx, key))
		}
	}
	return nil, "", errors.Join(found, err)
}

// leftOut are the keys of what the nodes leave out, and what it is.
func (r *restoring) leftOut(ctx context.Context) (all map[string]bool, text string, err error) {
	var files []facts.DamagedFile
	all = map[string]bool{}
	err = r.from.List(ctx, format.LeftOutPrefix(string(r.arguments.Restore.Cluster), r.arguments.Restore.Tag),
		func(o store.Object) error {
			f := facts.DamagedFile{HostID: path.Base(path.Dir(o.Key))}
			for _, t := range r.manifests[0].Tables {
				if t.ID == path.Base(o.Key) {
					f.Keyspace, f.Table = t.Keyspace, t.Name
				}
			}
			all[o.Key], files = true, append(files, f)
			return nil
		})
	if err != nil || len(files) == 0 {
		return all, "", err
	}
	text, err = restore.LeaveOut(r.backup, files)
	return all, text, err
}

// loadTables has Cassandra stream what was downloaded to its owners, one table of one node of the
// backup after the other. An attempt continues with those that the one before has not ended: rows
// that are streamed twice are the same rows.
func loadTables(ctx context.Context, t *task) (text string, err error) {
	r, err := t.restoring(ctx) // Cassandra passes over what it cannot load
	if err != nil {
		return "", err
	}
	_, without, err := r.leftOut(ctx)
	if err != nil {
		return "", err
	}
	staging, err := t.Staging(t.arguments.Restore.Tag)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, staging.Close()) }()
	tables, err := staging.Tables()
	if err != nil {
		return "", err
	}
	for i, dir := range tables {
		if t.Cancelled() {
			return "", ErrCancelled
		}
		t.Say(i, len(tables), fmt.Sprintf("streams %s, %d of %d", path.Base(path.Dir(dir))+"."+path.Base(dir), i+1,
			len(tables)))
		if err := t.JVM.BulkLoad(ctx, path.Join(layout.DataDir, dir)); err != nil {
			return "", err
		}
		if err := staging.Loaded(dir); err != nil {
			return "", err
		}
	}
	return "streamed to all that own it" + without, nil
}

// restoring reads what the backup has, and says what of it cannot come back.
func (t *task) restoring(ctx context.Context) (*restoring, error) {
	a := t.arguments.Restore
	view, err := t.Ring(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(a.Members, view.HostID) {
		return nil, fmt.Errorf("node %s was no member when the restore began", view.HostID)
	}
	r := &restoring{task: t, view: view, damaged: map[string]error{}}
	if r.from, err = t.Store(ctx, &a.Store); err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	backup, err := sweep.Read[format.Backup](ctx, r.from, format.BackupKey(string(a.Cluster), a.Backup))
	if errors.Is(err, store.ErrNotFound) {
		return nil, r.noBackup(ctx)
	}
	if err != nil {
		return nil, err
	}
	r.backup = backup
	share := restore.Share(backup.Nodes, a.Members, view.HostID)
	if r.idle = len(share) == 0; r.idle && len(backup.Nodes) > 0 {
		share = []string{backup.Nodes[0].HostID}
	}
	for _, member := range share {
		m, err := sweep.Read[format.Manifest](ctx, r.from, format.ManifestKey(string(a.Cluster), a.Backup, member))
		if err != nil {
			return nil, err
		}
		r.manifests = append(r.manifests, m)
	}
	if len(r.manifests) == 0 {
		return nil, fmt.Errorf("backup %s has no nodes", a.Backup)
	}
	return r, r.check(ctx)
}

// noBackup names those that there are.
func (r *restoring) noBackup(ctx context.Context) error {
	a := r.arguments.Restore
	prefix, there := format.BackupPrefix(string(a.Cluster)), []string{}
	err := r.from.List(ctx, prefix, func(o store.Object) error {
		there = append(there, strings.TrimSuffix(strings.TrimPrefix(o.Key, prefix), ".json"))
		return nil
	})
	if err != nil {
		return err
	}
	has := "none"
	if n := len(there); n > 0 {
		has = strings.Join(there[max(0, n-5):], ", ")
	}
	return fmt.Errorf("backup: the store has no backup %s of the cluster with uid %s, or not all of it; the last "+
		"that it has: %s", a.Backup, a.Cluster, has)
}

// check says what of the backup these tables cannot hold.
func (r *restoring) check(ctx context.Context) error {
	has, texts := map[string]restore.Schema{}, map[string]string{} // by keyspace
	if r.arguments.Restore.NewRing {
		return r.checkAll(ctx)
	}
	for _, keyspace := range r.arguments.Restore.Keyspaces {
		if len(restore.Tables(r.manifests[0], []string{keyspace})) == 0 {
			return fmt.Errorf("keyspaces: backup %s has no table of keyspace %s", r.arguments.Restore.Backup, keyspace)
		}
	}
	for _, wanted := range r.tables(r.manifests[0]) {
		keyspace, _, _ := strings.Cut(wanted.Target(), ".")
		if _, known := has[keyspace]; !known {
			if r.view.Keyspaces[keyspace] == "" {
				return fmt.Errorf("tables: there is no keyspace %s: create it and table %s first", keyspace,
					wanted.Target())
			}
			text, err := r.JVM.Describe(ctx, keyspace)
			if err != nil {
				return err
			}
			has[keyspace], texts[keyspace] = restore.ParseSchema(text), text
		}
		if r.arguments.Restore.Replace {
			if problem := restore.ViewProblem(wanted.Target(), texts[keyspace]); problem != "" {
				return errors.New(problem)
			}
		}
		for _, m := range r.manifests {
			table, err := tableOf(m, wanted.From)
			if err != nil {
				return err
			}
			had := restore.ParseSchema(table.Schema)
			if problem := restore.TableProblem(wanted, had, has[keyspace]); problem != "" {
				return errors.New(problem)
			}
			if err := r.readable(table); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkAll says what of the backup does not fit a ring that was made with its schema: CQL is
// closed, and a flush is refused for a table that is not there.
func (r *restoring) checkAll(ctx context.Context) error {
	nodes := map[string]int32{}
	for _, e := range r.view.Endpoints {
		nodes[e.Datacenter]++
	}
	for _, m := range r.manifests {
		keyspaces := r.arguments.Restore.Keyspaces
		to, problems := restore.Replicated(restore.Kept(m.Replication, keyspaces), nodes)
		if len(problems) > 0 {
			return errors.New(problems[0])
		}
		for _, table := range restore.Tables(m, keyspaces) {
			has := r.view.Keyspaces[table.Keyspace]
			class, options, err := ring.SplitReplication(has)
			if err != nil || !restore.Same(to[table.Keyspace], class, options) {
				return fmt.Errorf("keyspace %s is replicated by %q, and is to be by %v", table.Keyspace, has,
					to[table.Keyspace])
			}
			if err := r.JVM.Flush(ctx, table.Keyspace, table.Name); err != nil {
				return err
			}
			if err := r.readable(table); err != nil {
				return err
			}
		}
	}
	return nil
}

// readable says which SSTable of a table this node cannot read.
func (r *restoring) readable(table *format.Table) error {
	for _, s := range table.SSTables {
		if problem := restore.FormatProblem(&r.Record.Spec.Configuration, s.Name); problem != "" {
			return errors.New(problem)
		}
	}
	return nil
}

// tables that come back from what one node had.
func (r *restoring) tables(m *format.Manifest) []v1alpha1.RestoredTable {
	if wanted := r.arguments.Restore.Tables; len(wanted) > 0 {
		return wanted
	}
	var out []v1alpha1.RestoredTable
	for _, table := range restore.Tables(m, r.arguments.Restore.Keyspaces) {
		out = append(out, v1alpha1.RestoredTable{From: table.Keyspace + "." + table.Name})
	}
	return out
}

func tableOf(m *format.Manifest, name string) (*format.Table, error) {
	for i := range m.Tables {
		if t := &m.Tables[i]; t.Keyspace+"."+t.Name == name {
			return t, nil
		}
	}
	return nil, fmt.Errorf("tables: backup %s has no table %s", m.Backup, name)
}

// files that this node is to load. Indexes are built when rows arrive.
func (r *restoring) files() ([]staged, error) {
	var out []staged
	a := r.arguments.Restore
	if r.idle {
		return nil, nil
	}
	for _, m := range r.manifests {
		for _, wanted := range r.tables(m) {
			table, err := tableOf(m, wanted.From)
			if err != nil {
				return nil, err
			}
			keyspace, name, _ := strings.Cut(wanted.Target(), ".")
			for _, s := range table.SSTables {
				for _, f := range s.Files {
					if !strings.Contains(s.Name, "/") && !strings.HasPrefix(f.Name, "SAI") {
						out = append(out, staged{f, path.Join(m.Node.HostID, keyspace, name, s.Name),
							format.LeftOutKey(string(a.Cluster), a.Tag, r.view.HostID, m.Node.HostID, table.ID)})
					}
				}
			}
		}
	}
	return out, nil
}

// room is an error if the volume may become full: by what is downloaded, and by what comes to this
// node when all load, which is as much for each replica if they hold alike.
func (r *restoring) room(loads int64) error {
	most, name := int64(1), ""
	for _, wanted := range r.tables(r.manifests[0]) {
		keyspace, _, _ := strings.Cut(wanted.Target(), ".")
		name = keyspace
		_, options, err := ring.SplitReplication(r.view.Keyspaces[keyspace])
		if err != nil {
			return fmt.Errorf("keyspace %s: %w", keyspace, err)
		}
		replicas := int64(0)
		for _, text := range options {
			n, _ := strconv.ParseInt(text, 10, 32) // what is no number is no datacenter
			replicas += n
		}
		most = max(most, replicas)
	}
	_, free, err := r.Room(name)
	if err != nil {
		return err
	}
	if need := r.all + most*loads; free < need {
		return fmt.Errorf("the data volume has room for %d bytes, and %d are needed: %d to download, and about %d "+
			"times the %d that are loaded", free, need, r.all, most, loads)
	}
	return nil
}

// cancellable ends when the operation is to.
type cancellable struct {
	io.Reader
	t *task
}

// Read implements io.Reader.
func (c cancellable) Read(p []byte) (int, error) {
	if c.t.Cancelled() {
		return 0, ErrCancelled
	}
	return c.Reader.Read(p) //nolint:wrapcheck // who reads says what
}
