package operation

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/maphash"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/disk"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/garbage"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/backup/sweep"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/restore"
	"helenus.io/helenus/internal/core/ring"
)

// uploading is an Upload under way.
type uploading struct {
	*task
	to      store.Store
	cluster string
	hostID  string
	pace    *pace
	// hashes are those of files that were read before.
	hashes *disk.Hashes
	// journal is of files that were sent in part, and begun has the keys of those of this attempt.
	journal disk.Uploads
	begun   sync.Map
	// hashing and sending hold one for each file that is being hashed, and sent.
	hashing, sending chan struct{}

	// began is when the marks were read: the manifest is written soon after, or they are read
	// again. Marked blobs are pinned before they are relied on, by the keys in pins; late are their
	// files.
	began  time.Time
	marked garbage.Marks

	mu                  sync.Mutex
	done, all, newBytes int64
	pins                map[garbage.Sum]string
	pinned              time.Time
	late                []source
	// damaged are the blobs that a verification has found so, and that are not put again yet.
	damaged map[garbage.Sum]bool
}

// source is a file of the snapshot, or the pack of some, which becomes one of the manifest.
type source struct {
	disk.SnapshotFile
	table *format.Table
	file  *format.File
	// check tells what is read again from other content; it costs a tenth of a SHA-256.
	check *check
}

// check is a hash that no other process knows, nil before it was read.
type check []byte

// worthKeeping is how large a file is whose hash is kept: smaller ones are read in no time.
const worthKeeping = 1 << 20

// errContent means that a file has not the content of its hash, and so was not put.
var errContent = errors.New("its content has changed")

var checkSeed = maphash.MakeSeed()

// upload puts the files of a snapshot into a store, each by its content and only where it is not
// there, and the manifest last. What an attempt before has put there stays, and so do parts of a
// large file; if that was the manifest, it is done.
func upload(ctx context.Context, t *task) (string, error) {
	a := t.arguments.Backup
	view, err := t.Ring(ctx)
	if err != nil {
		return "", err
	}
	u := &uploading{task: t, cluster: string(t.Record.Spec.Cluster.UID), hostID: view.HostID,
		pace: newPace(ctx, t.Host, a.Bandwidth), hashing: make(chan struct{}, max(1, t.Uploads/2)),
		sending: make(chan struct{}, max(1, t.Uploads)), journal: disk.Uploads(t.DataVolume)}
	if u.to, err = t.Store(ctx, &a.Store); err != nil {
		return "", fmt.Errorf("open the store: %w", err)
	}
	key := format.ManifestKey(u.cluster, a.ID, view.HostID)
	had, err := sweep.Read[format.Manifest](ctx, u.to, key)
	if !errors.Is(err, store.ErrNotFound) {
		if err != nil {
			return "", err
		}
		return u.ended(had)
	}
	m, sources, err := u.manifest(view)
	if err != nil {
		return "", err
	}
	u.hashes = disk.OpenHashes(t.DataVolume, t.Now())
	err = u.putSafely(ctx, sources)
	u.hashes.Save(err == nil)
	if err != nil {
		return "", err
	}
	store.Abandon(ctx, u.to, u.journal) // of files that are gone
	if err := putObject(ctx, u.to, key, m); err != nil {
		return "", err
	}
	for _, pin := range u.pins {
		_ = u.to.Delete(ctx, pin) // the manifest counts from now on, and pins go by themselves
	}
	return u.ended(m)
}

// putSafely puts the files, by the rules of garbage: what is marked is pinned, and looked for a
// while after that. If it took too long for a manifest, it is done again, without reading the files
// again.
func (u *uploading) putSafely(ctx context.Context, sources []source) error {
	rules := garbage.Default
	for {
		if err := u.readMarks(ctx); err != nil {
			return err
		}
		if err := u.putAll(ctx, sources); err != nil {
			return err
		}
		if len(u.late) > 0 {
			for left := time.Nanosecond; left > 0; left = rules.Settle - u.Now().Sub(u.pinned) {
				if err := u.Wait(ctx, min(left, time.Second)); err != nil {
					return err
				}
				if u.Cancelled() {
					return ErrCancelled
				}
			}
			if err := u.putAll(ctx, u.late); err != nil {
				return err
			}
		}
		if u.Now().Sub(u.began) < rules.Within {
			return nil
		}
	}
}

// readMarks reads which blobs may be deleted.
func (u *uploading) readMarks(ctx context.Context) error {
	u.began, u.done, u.late, u.marked = u.Now(), 0, nil, nil
	if u.pins == nil {
		u.pins = map[garbage.Sum]string{}
	}
	marks, err := sweep.LastMarks(ctx, u.to, u.cluster)
	if err != nil {
		return err //nolint:wrapcheck // it says what it is about
	}
	if marks != nil {
		u.marked = marks.Unreliable()
	}
	u.damaged, err = sweep.Damaged(ctx, u.to, u.cluster)
	return err //nolint:wrapcheck // it says what it is about
}

// mend deletes an object that was found damaged, so that the file is put in its place. It says that
// it did: once the file is there, it is damaged no more.
func (u *uploading) mend(ctx context.Context, key string, sum garbage.Sum) (bool, error) {
	u.mu.Lock()
	damaged := u.damaged[sum]
	delete(u.damaged, sum) // files of one content are put once
	u.mu.Unlock()
	if !damaged {
		return false, nil
	}
	return true, store.Hide(ctx, u.to, key) //nolint:wrapcheck // it says what it is about
}

// pin a blob that is marked, before it is relied on. It says that the file is put later.
func (u *uploading) pin(ctx context.Context, s source, sum garbage.Sum) (later bool, err error) {
	if _, marked := u.marked[sum]; !marked {
		return false, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	key := format.PinKey(u.cluster, s.file.BlobName(), fmt.Sprintf("%s-%s-%d", u.arguments.Backup.ID, u.hostID,
		u.began.UnixNano()))
	if u.pins[sum] == key {
		later = u.Now().Sub(u.pinned) < garbage.Default.Settle
	} else {
		if err := u.to.Put(ctx, key, strings.NewReader(""), 0); err != nil && !errors.Is(err, store.ErrExists) {
			return false, err
		}
		u.pins[sum], u.pinned, later = key, u.Now(), true
	}
	if later {
		u.late = append(u.late, s)
	}
	return later, nil
}

// ended notes what is in the store.
func (u *uploading) ended(m *format.Manifest) (string, error) {
	out := &v1alpha1.Uploaded{Member: m.Node.HostID, NewBytes: u.newBytes}
	if taken := metav1.NewMicroTime(m.TakenAt); !taken.IsZero() {
		out.TakenAt = &taken
	}
	out.Files, out.Bytes = m.Content()
	u.handle.Uploaded = out
	return fmt.Sprintf("%d files of %d bytes are in the store, %d of them new", out.Files, out.Bytes, out.NewBytes),
		u.Note(u.handle)
}

// manifest of the node without the hashes of its files, and where these are.
func (u *uploading) manifest(view *facts.Ring) (*format.Manifest, []source, error) {
	a := u.arguments.Backup
	found, err := u.Snapshots(v1alpha1.BackupTagPrefix + a.ID)
	if err != nil {
		return nil, nil, err
	}
	self, known := view.ByHostID(view.HostID)
	if !known || !self.Member() {
		return nil, nil, errors.New("the node is no member in its own view")
	}
	m := &format.Manifest{Version: format.Version, Backup: a.ID, Cluster: u.cluster,
		SchemaVersion: view.SchemaVersion, Replication: map[string]map[string]string{},
		Node: format.Node{Name: u.Record.Name, HostID: view.HostID, Datacenter: self.Datacenter, Rack: self.Rack,
			CassandraVersion: view.ReleaseVersion}}
	for _, t := range self.Tokens {
		m.Node.Tokens = append(m.Node.Tokens, strconv.FormatInt(t, 10))
	}
	for name, text := range view.Keyspaces {
		class, options, err := ring.SplitReplication(text)
		if err != nil {
			return nil, nil, fmt.Errorf("keyspace %s: %w", name, err)
		}
		options["class"] = class
		m.Replication[name] = options
	}
	for _, s := range found {
		name, id, whole := strings.Cut(s.Table, "-")
		if s.Keyspace == "system" || slices.Contains(a.ExcludeTables, s.Keyspace+"."+name) {
			continue
		}
		if !whole {
			return nil, nil, fmt.Errorf("directory %s of keyspace %s has no id of a table", s.Table, s.Keyspace)
		}
		if m.TakenAt.IsZero() || s.TakenAt.Before(m.TakenAt) {
			m.TakenAt = s.TakenAt
		}
		table := format.Table{Keyspace: s.Keyspace, Name: name, ID: id, Schema: s.Schema}
		for _, f := range s.Files {
			if err := addFile(&table, f); err != nil {
				return nil, nil, err
			}
		}
		m.Tables = append(m.Tables, table)
	}
	if len(m.Tables) == 0 {
		return nil, nil, fmt.Errorf("the snapshot %s%s is not there: it was of another disk, or its time is over",
			v1alpha1.BackupTagPrefix, a.ID)
	}
	return m, u.sources(m, found), nil
}

// putAll puts some files at a time, as many as the host allows, and hashes others meanwhile. The
// largest are first: the last one to be sent is sent alone.
func (u *uploading) putAll(ctx context.Context, sources []source) error {
	sources = slices.Clone(sources)
	slices.SortStableFunc(sources, func(a, b source) int { return cmp.Compare(b.Size, a.Size) })
	return u.together(ctx, 2, len(sources), func(ctx context.Context, i int) error { return u.put(ctx, sources[i]) })
}

// together does so many things with a store, at a time some times as many as the host allows. The
// first error ends it.
func (t *task) together(ctx context.Context, times, n int, do func(ctx context.Context, i int) error) error {
	if t.Uploads <= 1 {
		for i := range n {
			if err := do(ctx, i); err != nil {
				return err
			}
		}
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(times * t.Uploads)
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait() //nolint:wrapcheck // it is ours
}

// put one file, unless an object of its hash and length is there. It is open for all of that, so
// that what was read for the hash need not come from the disk again.
func (u *uploading) put(ctx context.Context, s source) (err error) {
	from, err := s.Open()
	if err != nil {
		return fmt.Errorf("read %s: %w", s.Name, err)
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if s.file.SHA256 == "" {
		sum, err := u.sumInTurn(ctx, s, from)
		if err != nil {
			return fmt.Errorf("read %s: %w", s.Name, err)
		}
		if name := garbage.Sum(store.BlobName(u.to, sum)); name != sum {
			s.file.Blob = hex.EncodeToString(name[:])
		}
		s.file.SHA256 = hex.EncodeToString(sum[:])
	}
	name := s.file.BlobName()
	parsed, err := format.ParseSum(name)
	if err != nil {
		return err //nolint:wrapcheck // it says what it is about
	}
	if later, err := u.pin(ctx, s, parsed); later || err != nil {
		return err
	}
	key, added := format.BlobKey(u.cluster, name), int64(0)
	mended, err := u.mend(ctx, key, parsed)
	if err != nil {
		return err
	}
	switch size, err := store.Renew(ctx, u.to, key); {
	case err == nil && size != s.Size:
		return fmt.Errorf("object %s has %d bytes, and its hash is of a file of %d: it must be deleted", key, size,
			s.Size)
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return err
	case err != nil:
		err := u.send(ctx, s, from, key)
		if errors.Is(err, errContent) {
			u.hashes.Forget() // the next attempt reads all files
		}
		if err != nil && !errors.Is(err, store.ErrExists) {
			return fmt.Errorf("put %s: %w", s.Name, err)
		}
		if err == nil {
			added = s.Size
		}
	}
	if mended {
		if err := u.to.Delete(ctx, format.DamagedKey(u.cluster, name)); err != nil {
			return err //nolint:wrapcheck // it says what it is about
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.done, u.newBytes = u.done+s.Size, u.newBytes+added
	u.Say(int(u.done>>10), int(max(1, u.all>>10)), fmt.Sprintf("%d of %d bytes, %d of them new%s", u.done, u.all,
		u.newBytes, u.pace))
	return nil
}

// send a file as an object, once few enough others are sent: each takes a buffer.
func (u *uploading) send(ctx context.Context, s source, from io.ReadSeeker, key string) error {
	if err := occupy(ctx, u.sending); err != nil {
		return err
	}
	defer func() { <-u.sending }()
	content, err := u.read(ctx, s, from, true)
	if err != nil {
		return err
	}
	ctx = store.Slowed(ctx, u.pace.send)
	if _, twice := u.begun.LoadOrStore(key, true); twice { // two files of one content, perhaps at once
		return u.to.Put(ctx, key, content, s.Size)
	}
	return store.Resume(ctx, u.to, u.journal, key, content, s.Size)
}

// identify a file whose hash is worth keeping, and which Cassandra writes once: Statistics.db and
// Summary.db are changed in place, and so is Filter.db (FilterComponent#save, 5.0). Another disk of
// the node has another host id.
func (u *uploading) identify(s source, from io.Reader) (id disk.Identity, is bool) {
	switch s.file.Name {
	case "Data.db", "Index.db", "Partitions.db", "Rows.db", "CompressionInfo.db":
		if s.Size >= worthKeeping {
			return disk.Identify(from, u.Now(), u.hostID, s.table.Keyspace, s.table.Directory(), s.Name)
		}
	}
	return id, false
}

// occupy waits until so few others are at something that one more may be.
func occupy(ctx context.Context, by chan struct{}) error {
	select {
	case by <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sumInTurn hashes a file once few enough others are hashed, half as many as are sent: the first
// hash is known the sooner, and hashing is faster than sending.
func (u *uploading) sumInTurn(ctx context.Context, s source, from io.ReadSeeker) (sum garbage.Sum, err error) {
	if err := occupy(ctx, u.hashing); err != nil {
		return sum, err
	}
	defer func() { <-u.hashing }()
	return u.sum(ctx, s, from)
}

// sum is the SHA-256 of a file: the one that is kept, unless what the store has of it is damaged.
func (u *uploading) sum(ctx context.Context, s source, from io.ReadSeeker) (garbage.Sum, error) {
	id, keep := u.identify(s, from)
	if keep {
		sum, known := u.hashes.Of(id, u.Now())
		u.mu.Lock()
		damaged := u.damaged[store.BlobName(u.to, sum)]
		u.mu.Unlock()
		if known && !damaged {
			return sum, nil
		}
	}
	whole, buffer := sha256.New(), make([]byte, 256<<10)
	content, err := u.read(ctx, s, from, false)
	for i := 0; err == nil && i < len(s.file.Files); i++ {
		f, own := &s.file.Files[i], sha256.New()
		_, err = io.CopyBuffer(io.MultiWriter(whole, own), io.LimitReader(content, f.Size), buffer)
		f.SHA256 = hex.EncodeToString(own.Sum(nil))
	}
	if err == nil {
		_, err = io.CopyBuffer(whole, content, buffer)
		*s.check = content.hash.Sum(nil)
	}
	sum := garbage.Sum(whole.Sum(nil))
	if after, _ := u.identify(s, from); err == nil && keep && after == id {
		u.hashes.Keep(id, sum, u.Now())
	}
	return sum, err
}

// read a file from its start, within the limit and until it is cancelled. If it is sent, its last
// byte comes only if the content is that of its hash.
func (u *uploading) read(ctx context.Context, s source, from io.ReadSeeker, sent bool) (*limited, error) {
	_, err := from.Seek(0, io.SeekStart)
	quick := new(maphash.Hash)
	quick.SetSeed(checkSeed)
	l := &limited{ctx: ctx, u: u, from: from, left: s.Size, hash: quick}
	switch {
	case sent && *s.check != nil:
		l.want = *s.check
	case sent && err == nil: // its hash was kept
		l.hash = sha256.New()
		l.want, err = hex.DecodeString(s.file.SHA256)
	}
	return l, err
}

type limited struct {
	ctx  context.Context // that of the call that reads
	u    *uploading
	from io.Reader
	left int64
	hash hash.Hash
	want []byte // of hash; nil: anything
}

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	if l.u.Cancelled() {
		return 0, ErrCancelled
	}
	n, err := l.from.Read(p[:min(len(p), burst)])
	if waited := l.u.pace.wait(l.ctx, n); waited != nil {
		return 0, waited
	}
	l.left -= int64(n)
	_, _ = l.hash.Write(p[:n]) // never fails
	switch {
	case l.left < 0 || errors.Is(err, io.EOF) && l.left > 0:
		return 0, errors.New("its size has changed")
	case l.left == 0 && l.want != nil && !bytes.Equal(l.want, l.hash.Sum(nil)):
		return 0, errContent
	}
	return n, err //nolint:wrapcheck // who reads says what
}

// completeBackup writes the description of a backup, if the manifests of all of its members are
// there. It says the same on every node.
func completeBackup(ctx context.Context, t *task) (string, error) {
	a, cluster := t.arguments.Backup, t.Record.Spec.Cluster
	if t.Record.Namespace == "" {
		return "", errors.New("the record was not read since the agent has started")
	}
	to, err := t.Store(ctx, &a.Store)
	if err != nil {
		return "", fmt.Errorf("open the store: %w", err)
	}
	b := &format.Backup{Version: format.Version, ID: a.ID, Cluster: format.Cluster{UID: string(cluster.UID),
		Name: cluster.Name, Namespace: t.Record.Namespace, CassandraName: t.Record.Spec.Configuration.ClusterName}}
	if a.ClusterSpec != "" {
		b.Spec = json.RawMessage(a.ClusterSpec)
	}
	if err := t.leaveOut(ctx, b); err != nil {
		return "", err
	}
	members := slices.DeleteFunc(slices.Clone(a.Members), func(id string) bool {
		return slices.ContainsFunc(a.LeftOut, func(n v1alpha1.LeftOutNode) bool { return n.HostID == id })
	})
	var last time.Time
	keyspaces := map[string]bool{}
	for i, member := range members {
		t.Say(i, len(members), fmt.Sprintf("%d of %d manifests are there", i, len(members)))
		m, err := sweep.Read[format.Manifest](ctx, to, format.ManifestKey(b.Cluster.UID, a.ID, member))
		switch {
		case err != nil:
			return "", err
		case m.Backup != a.ID || m.Cluster != b.Cluster.UID || m.Node.HostID != member:
			return "", fmt.Errorf("the manifest of member %s is of backup %s of cluster %s, member %s", member,
				m.Backup, m.Cluster, m.Node.HostID)
		}
		if i == 0 || m.TakenAt.Before(b.TakenAt) {
			b.TakenAt, b.SchemaVersion, b.Replication = m.TakenAt, m.SchemaVersion, m.Replication
		}
		if m.TakenAt.After(last) {
			last = m.TakenAt
		}
		for _, table := range m.Tables {
			keyspaces[table.Keyspace] = true
		}
		_, size := m.Content()
		b.Nodes, b.Bytes = append(b.Nodes, m.Node), b.Bytes+size
	}
	if len(b.LeftOut) > 0 {
		if err := restore.LeavesOut(b, slices.Sorted(maps.Keys(keyspaces))); err != nil {
			return "", err
		}
	}
	b.Skew = last.Sub(b.TakenAt)
	return fmt.Sprintf("%d manifests are there, and the description of the backup", len(b.Nodes)),
		putObject(ctx, to, format.BackupKey(b.Cluster.UID, a.ID), b)
}

// leaveOut writes into the description of a backup where in the ring the members are that it is
// taken without.
func (t *task) leaveOut(ctx context.Context, b *format.Backup) error {
	leftOut := t.arguments.Backup.LeftOut
	if len(leftOut) == 0 {
		return nil
	}
	view, err := t.Ring(ctx)
	if err != nil {
		return err
	}
	for _, of := range leftOut {
		n := format.Node{Name: of.Node, HostID: of.HostID, Datacenter: of.Datacenter, Rack: of.Rack, Tokens: of.Tokens}
		if len(of.Tokens) == 0 {
			e, known := view.ByHostID(of.HostID)
			if !known || !e.Member() {
				return fmt.Errorf("node %s is no member of the ring any more: its ranges are not known", of.Node)
			}
			n.Datacenter, n.Rack, n.CassandraVersion = e.Datacenter, e.Rack, e.Release
			for _, token := range e.Tokens {
				n.Tokens = append(n.Tokens, strconv.FormatInt(token, 10))
			}
		}
		b.LeftOut = append(b.LeftOut, n)
	}
	return nil
}

// putObject writes one, unless it is there: an attempt before has said the same.
func putObject(ctx context.Context, to store.Store, key string, of any) error {
	text, err := json.Marshal(of)
	if err != nil {
		return fmt.Errorf("encode object %s: %w", key, err)
	}
	if err := to.Put(ctx, key, bytes.NewReader(text), int64(len(text))); err != nil && !errors.Is(err, store.ErrExists) {
		return err
	}
	return nil
}
