package verify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/garbage"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/backup/sweep"
	"helenus.io/helenus/internal/core/facts"
)

const (
	// atOnce is how many files are read at a time, and piece how many bytes of one.
	atOnce = 4
	piece  = 256 << 10
	// atMost is how many blobs of a backup are in memory at a time. Of one that has more the
	// manifests are read again for each part.
	atMost = 250_000
	// believed is how often a content is another one until it counts as damaged: what came over a
	// network once may be right in the store.
	believed = 2
)

// What is wrong with a file.
const (
	missing = "is missing"
	another = "has another content"
)

// blob of a backup, as the manifest of a node names it, the SHA-256 of its content, and how many
// files that has.
type blob struct {
	sum   garbage.Sum
	want  garbage.Sum
	size  int64
	node  int
	files int64
}

// table is one of a node.
type table struct{ host, keyspace, name string }

// verifying is a verification under way. It goes by parts, each of the hashes that begin with some
// bytes.
type verifying struct {
	store.Store
	cluster, backup string
	percent, most   int
	// from and to which percentage of all contents, in the order of their hashes, all are read.
	from, to int
	limit    *rate.Limiter
	found    *facts.VerifiedBackup
	// lost are the nodes without a manifest, and named how many files of a table are.
	lost  map[int]bool
	named map[table]int
	// damaged are the blobs that were found so before.
	damaged map[garbage.Sum]bool

	// Of a part: its blobs by sum, and which of the damaged ones are there.
	first, last byte
	blobs       []blob
	listed      map[garbage.Sum]bool

	mu  sync.Mutex
	bad map[garbage.Sum]string
}

// Backup looks for all files of a backup, and reads a sample of so many percent, as many bytes in a
// second as are allowed, with those that were found damaged before. Which are in the sample depends
// on the backup and on the content: another backup has another one. Beside it all contents are read
// from and to a percentage of them, in the order of their hashes. What is found damaged is noted in
// the store, so that the next backup puts it there again.
func Backup(ctx context.Context, s store.Store, cluster, backup string, sample, from, to int, bandwidth int64) (
	*facts.VerifiedBackup, error) {
	v := &verifying{Store: s, cluster: cluster, backup: backup, percent: sample, from: from, to: to, most: atMost,
		limit: rate.NewLimiter(rate.Limit(bandwidth), piece), lost: map[int]bool{}, named: map[table]int{}}
	return v.run(ctx)
}

func (v *verifying) run(ctx context.Context) (*facts.VerifiedBackup, error) {
	description, err := sweep.Read[format.Backup](ctx, v.Store, format.BackupKey(v.cluster, v.backup))
	if why := lost(err); why != "" {
		return &facts.VerifiedBackup{Description: &format.Backup{}, DamagedFiles: 1, Damaged: []facts.DamagedFile{
			{File: "its description", Why: why}}}, nil
	}
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what it is about
	}
	v.found = &facts.VerifiedBackup{Description: description}
	if v.damaged, err = sweep.Damaged(ctx, v.Store, v.cluster); err != nil {
		return nil, err //nolint:wrapcheck // it says what it is about
	}
	blobs := 0
	if err := v.all(ctx, func(_ int, _ *format.Table, _ string, f *format.File, _, _ garbage.Sum) {
		blobs++
		v.found.Files, v.found.Bytes = v.found.Files+int64(len(f.Unpacked())), v.found.Bytes+f.Size
	}); err != nil {
		return nil, err
	}
	size := 256
	for size > 1 && blobs*size/256 > v.most {
		size /= 2
	}
	for first := 0; first < 256; first += size {
		if err := v.part(ctx, byte(first), byte(first+size-1)); err != nil {
			return nil, err
		}
	}
	if v.found.ReadTo = v.to; v.percent == 100 {
		v.found.ReadTo = 100
	}
	return v.found, nil
}

// part verifies the blobs whose hashes begin with some bytes.
func (v *verifying) part(ctx context.Context, first, last byte) error {
	v.first, v.last, v.blobs = first, last, v.blobs[:0]
	v.listed, v.bad = map[garbage.Sum]bool{}, map[garbage.Sum]string{}
	if err := v.all(ctx, func(node int, _ *format.Table, _ string, f *format.File, sum, want garbage.Sum) {
		if v.in(sum) {
			v.blobs = append(v.blobs, blob{sum, want, f.Size, node, int64(len(f.Unpacked()))})
		}
	}); err != nil {
		return err
	}
	slices.SortFunc(v.blobs, func(a, b blob) int { return bytes.Compare(a.sum[:], b.sum[:]) })
	for _, do := range []func(context.Context) error{v.look, v.sample, v.note, v.name} {
		if err := do(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifying) in(sum garbage.Sum) bool { return sum[0] >= v.first && sum[0] <= v.last }

// lost is what is wrong with a description or a manifest by the error of reading it; empty if it
// may be right.
func lost(err error) string {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return missing
	case errors.Is(err, format.ErrDamaged) || errors.Is(err, store.ErrDamaged):
		return another
	}
	return ""
}

// all blobs that the manifests name, each with the name of its SSTable, the hash that names it, and
// its SHA-256.
func (v *verifying) all(ctx context.Context, each func(int, *format.Table, string, *format.File, garbage.Sum,
	garbage.Sum)) error {
	for i := range v.found.Description.Nodes {
		if err := v.read(ctx, i, each); err != nil {
			return err
		}
	}
	return nil
}

// read the blobs that the manifest of a node names, unless it is not what was written.
func (v *verifying) read(ctx context.Context, node int, each func(int, *format.Table, string, *format.File,
	garbage.Sum, garbage.Sum)) error {
	if v.lost[node] {
		return nil
	}
	of := v.found.Description.Nodes[node]
	key := format.ManifestKey(v.cluster, v.backup, of.HostID)
	m, err := sweep.Read[format.Manifest](ctx, v.Store, key)
	why := lost(err)
	switch {
	case why != "":
	case err != nil:
		return err //nolint:wrapcheck // it says what it is about
	case m.Cluster != v.cluster || m.Backup != v.backup || m.Node.HostID != of.HostID:
		why = another
	}
	if why != "" {
		v.lost[node] = true
		v.damage(facts.DamagedFile{HostID: of.HostID, Node: of.Name, File: "its manifest", Why: why})
		return nil
	}
	for i := range m.Tables {
		t := &m.Tables[i]
		for _, s := range t.SSTables {
			for j := range s.Files {
				f := &s.Files[j]
				sum, err := format.ParseSum(f.BlobName())
				want, also := format.ParseSum(f.SHA256)
				if err := errors.Join(err, also); err != nil {
					return fmt.Errorf("object %s: %w", key, err)
				}
				each(node, t, s.Name, f, sum, want)
			}
		}
	}
	return nil
}

// damage is counted, and some of each table are named.
func (v *verifying) damage(f facts.DamagedFile) {
	of := table{f.HostID, f.Keyspace, f.Table}
	v.found.DamagedFiles++
	if v.named[of]++; v.named[of] <= v1alpha1.MaxDamagedFiles {
		v.found.Damaged = append(v.found.Damaged, f)
	}
}

// look for all blobs: a list has a thousand in a request. What it lacks is asked for by itself.
func (v *verifying) look(ctx context.Context) error {
	i := 0
	var doubtful []blob
	pass := func(until func(blob) bool) {
		for ; i < len(v.blobs) && until(v.blobs[i]); i++ {
			doubtful = append(doubtful, v.blobs[i])
		}
	}
	each := func(o store.Object) error {
		sum, err := format.SumOf(v.cluster, o.Key)
		if err != nil {
			return fmt.Errorf("object %s: %w", o.Key, err)
		}
		if v.damaged[sum] {
			v.listed[sum] = true
		}
		pass(func(b blob) bool { return bytes.Compare(b.sum[:], sum[:]) < 0 })
		for ; i < len(v.blobs) && v.blobs[i].sum == sum; i++ {
			if v.blobs[i].size != o.Size {
				doubtful = append(doubtful, v.blobs[i])
			}
		}
		return nil
	}
	prefixes := []string{""}
	if v.last-v.first < 255 {
		prefixes = nil
		for n := int(v.first); n <= int(v.last); n++ {
			prefixes = append(prefixes, fmt.Sprintf("%02x/", n))
		}
	}
	for _, prefix := range prefixes {
		if err := v.List(ctx, format.BlobPrefix(v.cluster)+prefix, each); err != nil {
			return err //nolint:wrapcheck // it says what it is about
		}
	}
	pass(func(blob) bool { return true })
	for _, b := range doubtful {
		switch size, err := v.Size(ctx, v.key(b.sum)); {
		case errors.Is(err, store.ErrNotFound):
			v.bad[b.sum] = missing
		case err != nil:
			return err //nolint:wrapcheck // it says what it is about
		case size != b.size:
			v.bad[b.sum] = fmt.Sprintf("has %d bytes, not %d", size, b.size)
		}
	}
	return nil
}

func (v *verifying) key(sum garbage.Sum) string {
	return format.BlobKey(v.cluster, fmt.Sprintf("%x", sum))
}

// sample reads blobs whole.
func (v *verifying) sample(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	last := garbage.Sum{}
	for i, b := range v.blobs {
		if again := i > 0 && b.sum == last; again || ctx.Err() != nil {
			continue
		}
		last = b.sum
		v.mu.Lock()
		known := v.bad[b.sum] != ""
		v.mu.Unlock()
		at := int(binary.BigEndian.Uint16(b.sum[:])) * 100 >> 16
		if !known && (v.damaged[b.sum] || v.from <= at && at < v.to || chosen(v.backup, b.sum, v.percent)) {
			group.Go(func() error { return v.hash(ctx, b) })
		}
	}
	return group.Wait() //nolint:wrapcheck // it is ours
}

func chosen(backup string, sum garbage.Sum, percent int) bool {
	h := fnv.New64a()
	_, _ = h.Write([]byte(backup))
	_, _ = h.Write(sum[:])
	return binary.BigEndian.Uint64(h.Sum(nil)[:8])%100 < uint64(percent)
}

// hash reads one blob.
func (v *verifying) hash(ctx context.Context, b blob) error {
	why := ""
	for range believed {
		switch sum, err := v.sum(ctx, b); {
		case errors.Is(err, store.ErrNotFound):
			why = missing
		case errors.Is(err, store.ErrDamaged) || errors.Is(err, store.ErrNoIdentity): // its manifest could be read
			why = another
		case err != nil:
			return err
		case sum == b.want:
			why = ""
		default:
			why = another
		}
		if why == "" {
			break
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.found.FilesRead, v.found.BytesRead = v.found.FilesRead+b.files, v.found.BytesRead+b.size
	if why != "" {
		v.bad[b.sum] = why
	}
	return nil
}

func (v *verifying) sum(ctx context.Context, b blob) (out garbage.Sum, err error) {
	content, err := v.Get(ctx, v.key(b.sum))
	if err != nil {
		return out, err //nolint:wrapcheck // it says what it is about
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	sum, buffer := sha256.New(), make([]byte, piece)
	for {
		n, err := content.Read(buffer)
		if waited := v.limit.WaitN(ctx, n); waited != nil {
			return out, fmt.Errorf("read object %s: %w", v.key(b.sum), waited)
		}
		_, _ = sum.Write(buffer[:n])
		switch {
		case errors.Is(err, io.EOF):
			return garbage.Sum(sum.Sum(nil)), nil
		case err != nil:
			return out, fmt.Errorf("read object %s: %w", v.key(b.sum), err)
		}
	}
}

// note in the store what is damaged there, and take back what is not any more, or is not there: who
// looks for that puts it.
func (v *verifying) note(ctx context.Context) error {
	for sum, why := range v.bad {
		if key := format.DamagedKey(v.cluster, fmt.Sprintf("%x", sum)); why != missing {
			if err := v.Put(ctx, key, strings.NewReader(""), 0); err != nil && !errors.Is(err, store.ErrExists) {
				return err //nolint:wrapcheck // it says what it is about
			}
		}
	}
	for sum := range v.damaged {
		if !v.in(sum) {
			continue
		}
		_, ours := slices.BinarySearchFunc(v.blobs, sum, func(b blob, sum garbage.Sum) int {
			return bytes.Compare(b.sum[:], sum[:])
		})
		if right := ours && v.bad[sum] == ""; right || !v.listed[sum] {
			if err := v.Delete(ctx, format.DamagedKey(v.cluster, fmt.Sprintf("%x", sum))); err != nil {
				return err //nolint:wrapcheck // it says what it is about
			}
		}
	}
	return nil
}

// name what is bad: the manifests of its nodes are read again, since their names are not kept.
func (v *verifying) name(ctx context.Context) error {
	nodes := map[int]bool{}
	for _, b := range v.blobs {
		if v.bad[b.sum] != "" {
			nodes[b.node] = true
		}
	}
	for _, i := range slices.Sorted(maps.Keys(nodes)) {
		of := &v.found.Description.Nodes[i]
		if err := v.read(ctx, i, func(_ int, t *format.Table, name string, f *format.File, sum, _ garbage.Sum) {
			why := v.bad[sum]
			if why == "" {
				return
			}
			if len(f.Files) > 0 {
				why = "is in a pack that " + why
			}
			for _, c := range f.Unpacked() {
				v.damage(facts.DamagedFile{HostID: of.HostID, Node: of.Name, Keyspace: t.Keyspace, Table: t.Name,
					File: name + "-" + c.Name, Why: why})
			}
		}); err != nil {
			return err
		}
	}
	return nil
}
