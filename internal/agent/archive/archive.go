package archive

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
)

const (
	// logDir is where Cassandra has the segments, on the volume of its commit log, and linkDir
	// where the links to them are.
	logDir  = "commitlog"
	linkDir = ".helenus/log"
	// stateFile has what is known of the log, beside the links.
	stateFile = linkDir + "/state.json"
	// LongestSync is the longest commitlog_sync_period for which quiet holds, and Cassandra's own.
	LongestSync = 10 * time.Second
	// quiet is after how long without growth all that was acknowledged before it is marked:
	// Cassandra syncs every LongestSync, and lets no write wait for more than half of that after
	// it.
	quiet = 25 * time.Second
)

// state is what outlives the agent.
type state struct {
	// HostID of the member whose log it is.
	HostID string `json:"hostID"`
	// From when on there is no hole, and up to when all is in the store; zero for not yet.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Last is the id of the last segment that was linked, and LookedAt when the directory was last
	// looked at, to some seconds.
	Last     int64     `json:"last"`
	LookedAt time.Time `json:"lookedAt"`
}

// Log is the commit log of a member on the volume that has it. Look and Upload may be called beside
// each other.
type Log struct {
	volume *os.Root

	mu sync.Mutex
	state
	// marked is what is known to be marked of each link, by its name.
	marked map[string]int64
	// tail is the end of the log when it was last looked at, which was there since tailSince.
	tail      tail
	tailSince time.Time
	// covered is up to when all that was acknowledged is marked in the links.
	covered time.Time
	hole    string

	// sent is how much of each link is in the store; Upload alone uses it.
	sent map[string]int64
}

type tail struct{ id, end int64 }

// Open begins with the log of a member, or continues.
func Open(directory, hostID string, now time.Time) (*Log, error) {
	volume, err := os.OpenRoot(directory)
	if err != nil {
		return nil, fmt.Errorf("open volume of the commit log: %w", err)
	}
	l := &Log{volume: volume, marked: map[string]int64{}, sent: map[string]int64{}}
	text, err := volume.ReadFile(stateFile)
	if err == nil {
		err = json.Unmarshal(text, &l.state)
	}
	if err != nil || l.HostID != hostID { // none, or that of another member: nothing of it is certain
		if err := errors.Join(volume.RemoveAll(linkDir), volume.MkdirAll(linkDir, 0o750)); err != nil {
			return nil, errors.Join(fmt.Errorf("make directory %s: %w", linkDir, err), volume.Close())
		}
		l.state = state{HostID: hostID, From: now}
	}
	return l, nil
}

// Close ends its use. The links stay.
func (l *Log) Close() error { return l.volume.Close() }

// Forget removes all links on a volume whose log is not kept any more.
func Forget(directory string) error {
	volume, err := os.OpenRoot(directory)
	if err != nil {
		return fmt.Errorf("open volume of the commit log: %w", err)
	}
	return errors.Join(volume.RemoveAll(linkDir), volume.Close())
}

// Covered is since when there is no hole in the log, up to when it is in the store, and why there
// was a hole last.
func (l *Log) Covered() (from, to time.Time, hole string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.From, l.To, l.hole
}

// Look links the segments that have appeared, and sees how far Cassandra has marked the log. Links
// whose files Cassandra has deleted may hold as many bytes as most says; the oldest of more are
// removed. It is to be called each second.
func (l *Log) Look(now time.Time, most int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.state
	linked, err := l.link(now)
	if err != nil {
		return err
	}
	if linked, err = l.bound(linked, now, most); err != nil {
		return err
	}
	if err := l.follow(linked, now); err != nil {
		return err
	}
	l.LookedAt = now
	if l.Last != before.Last || !l.From.Equal(before.From) {
		return l.keep()
	}
	return nil
}

// link is one by its names in both directories.
type link struct {
	format.Segment
	id int64
}

func (s link) path() string { return path.Join(linkDir, s.String()) }

// links are all that there are, oldest first.
func (l *Log) links() ([]link, error) {
	entries, err := fs.ReadDir(l.volume.FS(), linkDir)
	if err != nil {
		return nil, fmt.Errorf("list links to the commit log: %w", err)
	}
	var out []link
	for _, e := range entries {
		if s, err := format.ParseSegment(e.Name()); err == nil && segmentID(s.Name) > 0 {
			out = append(out, link{s, segmentID(s.Name)})
		}
	}
	slices.SortFunc(out, byID)
	return out, nil
}

func byID(a, b link) int { return cmp.Compare(a.id, b.id) }

// link those that have no link yet, and find out whether one came and went unseen.
func (l *Log) link(now time.Time) ([]link, error) {
	linked, err := l.links()
	if err != nil {
		return nil, err
	}
	known := map[int64]bool{}
	for _, s := range linked {
		known[s.id] = true
	}
	entries, err := fs.ReadDir(l.volume.FS(), logDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the commit log: %w", err)
	}
	var fresh []link
	for _, e := range entries {
		if id := segmentID(e.Name()); id > 0 && !known[id] && (id > l.Last || l.Last == 0) {
			fresh = append(fresh, link{format.Segment{Name: e.Name(), Appeared: now}, id})
		}
	}
	slices.SortFunc(fresh, byID)
	for _, s := range fresh {
		err := l.volume.Link(path.Join(logDir, s.Name), s.path())
		switch {
		case errors.Is(err, fs.ErrNotExist):
			l.interrupt(now, s.Name+" was deleted before it was linked")
		case err != nil:
			return nil, fmt.Errorf("link segment %s: %w", s.Name, err)
		default:
			linked = append(linked, s)
		}
		if l.Last > 0 && s.id != l.Last+1 && s.id < l.LookedAt.UnixMilli() {
			// Not the first of a JVM that was started since: its id would be a later time.
			l.interrupt(now, fmt.Sprintf("segments %d to %d were deleted before they were linked", l.Last+1, s.id-1))
		}
		l.Last = s.id
	}
	return linked, nil
}

// interrupt notes a hole: what is covered begins again.
func (l *Log) interrupt(now time.Time, why string) {
	l.From, l.To, l.hole = now, time.Time{}, why
	l.covered, l.tail, l.tailSince = time.Time{}, tail{}, time.Time{}
}

// bound removes the oldest links whose files nobody else has, while they hold too much.
func (l *Log) bound(linked []link, now time.Time, most int64) ([]link, error) {
	var held int64
	var alone []link
	for _, s := range linked {
		used, others, err := l.usage(s)
		if err != nil {
			return nil, err
		}
		if others == 0 {
			held, alone = held+used, append(alone, s)
		}
	}
	for _, s := range alone {
		if held <= most {
			break
		}
		used, _, err := l.usage(s)
		if err == nil {
			err = l.volume.Remove(s.path())
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("remove link %s: %w", s, err)
		}
		held -= used
		linked = slices.DeleteFunc(linked, func(o link) bool { return o == s })
		l.interrupt(now, s.Name+" was deleted: what was not sent yet had more than its share of the disk")
	}
	return linked, nil
}

// usage is what the file of a link has on the disk, and how many other names it has.
func (l *Log) usage(s link) (used int64, others uint64, err error) {
	info, err := l.volume.Lstat(s.path())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 1, nil // all of it was sent, and it was removed just now
	}
	if err != nil {
		return 0, 0, fmt.Errorf("look at link %s: %w", s, err)
	}
	stat, is := info.Sys().(*syscall.Stat_t)
	if !is {
		return info.Size(), 0, nil
	}
	return stat.Blocks * 512, uint64(stat.Nlink) - 1, nil //nolint:unconvert // of 32 bits on arm64
}

// follow the end of the log. When it has moved since the last look, all that was acknowledged
// before that look is marked: Cassandra marks the older segments first.
func (l *Log) follow(linked []link, now time.Time) error {
	at := l.tail
	for _, s := range linked {
		if s.id < l.tail.id {
			continue
		}
		end, err := syncedIn(l.volume, s.path(), s.id, l.marked[s.String()])
		if errors.Is(err, fs.ErrNotExist) {
			continue // see usage
		}
		if err != nil {
			return fmt.Errorf("read the commit log: %w", err)
		}
		if end > 0 {
			l.marked[s.String()], at = end, tail{s.id, end}
		}
	}
	switch {
	case l.tailSince.IsZero():
		l.tail, l.tailSince = at, now
	case at != l.tail:
		l.tail, l.tailSince, l.covered = at, now, latest(l.covered, l.LookedAt)
	case now.Sub(l.tailSince) >= quiet:
		l.covered = latest(l.covered, now.Add(-quiet))
	}
	return nil
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// keep writes the state down.
func (l *Log) keep() error {
	text, err := json.Marshal(l.state)
	if err != nil {
		return fmt.Errorf("encode state of the commit log: %w", err)
	}
	return place(l.volume, stateFile, bytes.NewReader(text))
}

// Upload sends what has grown since, removes the links to what is sent whole, and then says in the
// store up to when it has all.
func (l *Log) Upload(ctx context.Context, to store.Store, cluster string) error {
	l.mu.Lock()
	all := format.Interval{From: l.From, To: l.covered}
	linked, err := l.links()
	l.mu.Unlock()
	if err != nil {
		return err
	}
	for _, s := range linked {
		if err := l.send(ctx, to, cluster, s); err != nil {
			return fmt.Errorf("send segment %s: %w", s.Name, err)
		}
	}
	l.mu.Lock()
	was, hostID := l.To, l.HostID
	stands := l.From.Equal(all.From)
	l.mu.Unlock()
	if !stands || all.To.Before(all.From) || !all.To.After(was) {
		return nil
	}
	key := format.CoveredKey(cluster, hostID, all)
	if err := to.Put(ctx, key, strings.NewReader(""), 0); err != nil && !errors.Is(err, store.ErrExists) {
		return err //nolint:wrapcheck // it says what it is about
	}
	if old := format.CoveredKey(cluster, hostID, format.Interval{From: all.From, To: was}); !was.IsZero() &&
		old != key {
		if err := to.Delete(ctx, old); err != nil {
			return err //nolint:wrapcheck // it says what it is about
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.From.Equal(all.From) {
		l.To = all.To
	}
	return l.keep()
}

// send what has grown in one segment since the last time. A part is known by where it begins: one
// that is there was sent by an attempt of which this one does not know.
func (l *Log) send(ctx context.Context, to store.Store, cluster string, s link) error {
	_, others, err := l.usage(s)
	if err != nil {
		return err
	}
	file, err := l.volume.Open(s.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was deleted just now
	}
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was only read
	end, err := Synced(file, s.id, l.sent[s.String()])
	if err != nil {
		return err
	}
	for at := l.sent[s.String()]; at < end; at = l.sent[s.String()] {
		key := format.PartKey(cluster, l.HostID, s.Segment, at)
		size := end - at
		err := to.Put(ctx, key, io.NewSectionReader(file, at, size), size)
		if errors.Is(err, store.ErrExists) {
			size, err = to.Size(ctx, key)
			if err == nil && (size <= 0 || size > end-at) {
				err = fmt.Errorf("object %s has %d bytes, and the segment %d after it: it must be deleted", key, size,
					end-at)
			}
		}
		if err != nil {
			return err
		}
		l.sent[s.String()] = at + size
	}
	if others > 0 {
		return nil
	}
	delete(l.sent, s.String())
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.marked, s.String())
	return l.volume.Remove(s.path())
}
