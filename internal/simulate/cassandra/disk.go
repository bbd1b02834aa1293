package cassandra

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"helenus.io/helenus/internal/agent/disk"
	"helenus.io/helenus/internal/core/ring"
)

// Disk is a data directory with its commit log. It outlives processes and pods.
type Disk struct {
	// log is system.local with what only the commit log has, table the same as the SSTables have
	// it; nil before Cassandra wrote any.
	log, table *local
	// segments says that there is a commit log.
	segments bool
	peers    map[netip.Addr]peer
	schema   schema
	// data are the rows by keyspace and key.
	data map[string]map[string]cell
	// recent are writes that the commit log may not have synced yet, oldest first.
	recent []recentWrite
	hints  map[string][]hint
	// problem makes the directory unreadable: files that are corrupt.
	problem string
	// size is what there is room for, 0 for anything; full says that there is none left.
	size int64
	full bool
	// newest is the release that was NORMAL on it, of the latest line.
	newest string
	// snapshots are keyspaces by tag, lasting the tags of those without an end, sstables the
	// versions of the oldest ones by keyspace.
	snapshots map[string][]string
	lasting   []string
	sstables  map[string]string
	// kept are those rows of a keyspace that a snapshot has, by tag and keyspace.
	kept map[string]map[string]Kept
	// files are the hashes of those of a backup that were put there, by keyspace.
	files map[string]string
	// staged are files that no JVM reads by itself, by their paths.
	staged map[string][]byte
	// roles are the rows of system_auth.roles, and placed is an SSTable of it that is not in use;
	// loaded counts those that were taken in.
	roles  map[string]role
	placed []byte
	loaded int
	// available are ranges that a bootstrap has streamed.
	available map[string]bool
	// user is the JVM that runs on it.
	user *Process
}

// local is the row of system.local.
type local struct {
	word        disk.Bootstrapped
	hostID      string
	clusterName string
	dc, rack    string
	release     string
	tokens      []ring.Token
	generation  int64
	broadcast   netip.Addr
}

// peer is a row of system.peers_v2.
type peer struct {
	hostID   string
	tokens   []ring.Token
	dc, rack string
	release  string
	schema   string
}

type cell struct {
	value string
	// at is the timestamp of the write, which decides between two.
	at int64
	// deleted says that it is a deletion, which is kept until then.
	deleted bool
	until   time.Time
}

// row is the value, if there is one.
func (c cell) row() bool { return c.at > 0 && !c.deleted }

type recentWrite struct {
	at            time.Time
	keyspace, key string
	before        cell
	had           bool
}

// syncPeriod is commitlog_sync_period: what was written since may be lost with the host, not with
// the process.
const syncPeriod = 10 * time.Second

// NewDisk is an empty directory.
func NewDisk() *Disk {
	d := &Disk{}
	d.Wipe()
	return d
}

// Wipe empties it; so does its loss. A JVM that runs on it dies of that.
func (d *Disk) Wipe() {
	user, size := d.user, d.size
	*d = Disk{size: size, peers: map[netip.Addr]peer{}, data: map[string]map[string]cell{}, hints: map[string][]hint{},
		available: map[string]bool{}, snapshots: map[string][]string{}, sstables: map[string]string{},
		kept: map[string]map[string]Kept{}, files: map[string]string{}, staged: map[string][]byte{}}
	if user != nil {
		user.Die(exitDisk, "JVM state determined to be unstable.  Exiting forcefully due to:: "+
			"org.apache.cassandra.io.FSWriteError: java.nio.file.NoSuchFileException")
	}
}

// WipeRows removes all rows, and the commit log with what only that has.
func (d *Disk) WipeRows() {
	d.data, d.hints, d.recent = map[string]map[string]cell{}, map[string][]hint{}, nil
	d.log, d.segments, d.roles = d.table, false, nil
}

// LoseRows loses the SSTables of a keyspace.
func (d *Disk) LoseRows(keyspace string) { delete(d.data, keyspace) }

// Clone is a copy as a snapshot of the volume makes it.
func (d *Disk) Clone() *Disk {
	c := *d
	c.user = nil
	if d.log != nil {
		log := *d.log
		c.log = &log
	}
	c.peers, c.schema, c.available = maps.Clone(d.peers), d.schema.clone(), maps.Clone(d.available)
	c.recent, c.snapshots, c.sstables = slices.Clone(d.recent), maps.Clone(d.snapshots), maps.Clone(d.sstables)
	c.roles, c.kept, c.files = maps.Clone(d.roles), maps.Clone(d.kept), maps.Clone(d.files)
	c.staged = maps.Clone(d.staged)
	c.data, c.hints = map[string]map[string]cell{}, map[string][]hint{}
	for keyspace, rows := range d.data {
		c.data[keyspace] = maps.Clone(rows)
	}
	for host, hints := range d.hints {
		c.hints[host] = slices.Clone(hints)
	}
	return &c
}

// Newest is the release that was NORMAL on it, of the latest line; empty if none was.
func (d *Disk) Newest() string { return d.newest }

// Hints counts the files of hints by the host id that they are for: one for each is enough here.
func (d *Disk) Hints() map[string]int {
	out := map[string]int{}
	for host := range d.hints {
		out[host] = 1
	}
	return out
}

// Corrupt makes files of it unreadable, in those words; empty mends them.
func (d *Disk) Corrupt(problem string) { d.problem = problem }

// Resize gives it room for so many bytes, 0 for anything.
func (d *Disk) Resize(bytes int64) { d.size = bytes }

// Size is what it has room for, 0 for anything.
func (d *Disk) Size() int64 { return d.size }

// Fill leaves no room on it, or makes room again. A JVM that runs on it ends at its next write.
func (d *Disk) Fill(full bool) { d.full = full }

// LoseUnsynced is what the crash of the host does: writes that were not synced are gone.
func (d *Disk) LoseUnsynced(now time.Time) {
	for i := len(d.recent) - 1; i >= 0 && now.Sub(d.recent[i].at) < syncPeriod; i-- {
		w := d.recent[i]
		if w.had {
			d.data[w.keyspace][w.key] = w.before
		} else {
			delete(d.data[w.keyspace], w.key)
		}
	}
	d.recent, d.log = nil, d.table
}

// HostID is the host id on the disk, commit log included; empty if there is none.
func (d *Disk) HostID() string {
	if d.log == nil {
		return ""
	}
	return d.log.hostID
}

// Report is what inspecting the volume tells, as internal/agent/disk reads it from a real one: the
// tables, not the commit log.
func (d *Disk) Report() disk.Report {
	var r disk.Report
	if d.problem != "" {
		r.Problem = d.problem
		return r
	}
	if d.segments {
		r.Segments = 2
	}
	for _, k := range d.placedKeyspaces() {
		r.Keyspaces = append(r.Keyspaces, disk.Keyspace{Name: k, HasData: true})
	}
	if d.table == nil {
		return r
	}
	t := d.table
	r.Keyspaces = append(r.Keyspaces, disk.Keyspace{Name: "system", HasData: true})
	for _, k := range d.schema.names() {
		r.Keyspaces = append(r.Keyspaces, disk.Keyspace{Name: k, HasData: len(d.data[k]) > 0})
	}
	l := &disk.Local{
		Bootstrapped: t.word, HostID: t.hostID, ClusterName: t.clusterName, GossipGeneration: int32(t.generation),
	}
	for _, token := range t.tokens {
		l.Tokens = append(l.Tokens, int64(token))
	}
	r.Local, r.SSTables = l, []string{"nb-1-big-Data.db"}
	return r
}

// change writes to system.local; flush also to its table.
func (d *Disk) change(flush bool, f func(l *local)) {
	next := local{}
	if d.log != nil {
		next = *d.log
	}
	f(&next)
	d.log, d.segments = &next, true
	if flush {
		d.table = d.log
	}
}

// setWord is setBootstrapState, which flushes.
func (d *Disk) setWord(word disk.Bootstrapped) { d.change(true, func(l *local) { l.word = word }) }

func (d *Disk) word() disk.Bootstrapped {
	if d.log == nil {
		return disk.BootstrapUnknown
	}
	return d.log.word
}

// flush writes all memtables.
func (d *Disk) flush() {
	if d.log != nil {
		d.table = d.log
	}
	d.recent = nil
}

// put writes a row, the later timestamp wins. What the commit log has not synced yet may be lost
// with the host.
func (d *Disk) put(now time.Time, keyspace, key string, c cell) {
	before, had := d.data[keyspace][key]
	if !d.set(keyspace, key, c) {
		return
	}
	for len(d.recent) > 0 && now.Sub(d.recent[0].at) >= syncPeriod {
		d.recent = d.recent[1:]
	}
	d.recent = append(d.recent, recentWrite{at: now, keyspace: keyspace, key: key, before: before, had: had})
}

// putStreamed writes a row that came with a stream, whose SSTables are synced before it ends.
func (d *Disk) putStreamed(keyspace, key string, c cell) {
	if d.set(keyspace, key, c) {
		// What of the row was not synced before is of no account any more.
		d.recent = slices.DeleteFunc(d.recent, func(w recentWrite) bool {
			return w.keyspace == keyspace && w.key == key
		})
	}
}

// set says whether the row is new, and there. One that there is no room for fills the disk.
func (d *Disk) set(keyspace, key string, c cell) bool {
	rows := d.data[keyspace]
	if rows == nil {
		rows = map[string]cell{}
		d.data[keyspace] = rows
	}
	if before, had := rows[key]; had && (before.at > c.at || before.at == c.at && before.value >= c.value) {
		return false
	}
	rows[key] = c
	if d.size > 0 && d.Bytes() > d.size {
		delete(rows, key)
		d.full = true
		return false
	}
	return true
}

// compact forgets a deletion for good.
func (d *Disk) compact(keyspace, key string, deletion cell) {
	if d.data[keyspace][key] == deletion {
		delete(d.data[keyspace], key)
	}
}

// InUse says that a JVM has it open. Cassandra does not notice another, and the two delete each
// other's files (measured, 5.0.6).
func (d *Disk) InUse() bool { return d.user != nil }

// Unfit says that Cassandra does not start on it: it is full, or a file is corrupt.
func (d *Disk) Unfit() bool { return d.full || d.problem != "" }

// Full says that there is no room left.
func (d *Disk) Full() bool { return d.full }

// Bytes is the size of the data.
func (d *Disk) Bytes() int64 {
	const base = 100_000
	bytes := int64(base)
	for keyspace := range d.data {
		bytes += d.BytesOf(keyspace)
	}
	return bytes
}

// BytesOf is the size of the rows of a keyspace.
func (d *Disk) BytesOf(keyspace string) int64 {
	const perRow = 200
	return perRow * int64(len(d.data[keyspace]))
}

// keys of a keyspace, sorted.
func (d *Disk) keys(keyspace string) []string { return slices.Sorted(maps.Keys(d.data[keyspace])) }
