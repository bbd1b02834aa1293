package memdisk

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"helenus.io/helenus/internal/agent/journal"
)

// Op is what a step does.
type Op string

// The steps that change something.
const (
	OpCreate  Op = "create"
	OpWrite   Op = "write"
	OpSync    Op = "sync"
	OpRename  Op = "rename"
	OpMkdir   Op = "mkdir"
	OpSyncDir Op = "syncdir"
)

// Step is one change, numbered from 0 over the life of a disk.
type Step struct {
	Number int
	Op     Op
	Name   string
}

func (s Step) String() string { return fmt.Sprintf("step %d, %s %s", s.Number, s.Op, s.Name) }

// Hook is called around each step, without a lock held. Called before (done is false) it may return
// an error, which the step then returns without effect; what it returns afterwards is the result of
// a step that took effect. It may panic or end its goroutine in both places: the agent is killed
// before or after the step.
type Hook func(s Step, done bool) error

// Disk is a volume in memory. Its zero value is not usable: see New.
type Disk struct {
	mu      sync.Mutex
	names   map[string]*node // as a running process sees them
	durable map[string]*node // as they surely are after a loss of power
	pending []change         // of names, not durable yet, in order
	hook    Hook
	steps   int
}

// node is a file or a directory.
type node struct {
	dir     bool
	content []byte
	synced  []byte
}

// change of the names in one directory.
type change struct {
	dir string
	set string // name that is set to node
	to  *node
	del string // name that goes, for a rename
}

func (c change) apply(names map[string]*node) {
	if c.del != "" {
		delete(names, c.del)
	}
	names[c.set] = c.to
}

// New returns an empty volume.
func New() *Disk {
	return &Disk{names: map[string]*node{".": {dir: true}}, durable: map[string]*node{".": {dir: true}}}
}

// SetHook sets what is called around each step; nil for nothing.
func (d *Disk) SetHook(h Hook) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hook = h
}

// Steps returns how many steps were taken.
func (d *Disk) Steps() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.steps
}

// step numbers a change, calls the hook around it, and makes it under the lock.
func (d *Disk) step(op Op, name string, do func() error) error {
	d.mu.Lock()
	s, hook := Step{Number: d.steps, Op: op, Name: name}, d.hook
	d.steps++
	d.mu.Unlock()
	if hook != nil {
		if err := hook(s, false); err != nil {
			return err
		}
	}
	d.mu.Lock()
	err := do()
	d.mu.Unlock()
	if err != nil || hook == nil {
		return err
	}
	return hook(s, true)
}

// ReadFile implements journal.FS.
func (d *Disk) ReadFile(name string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.names[path.Clean(name)]
	if n == nil || n.dir {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return slices.Clone(n.content), nil
}

// Create implements journal.FS.
func (d *Disk) Create(name string) (journal.File, error) {
	name = path.Clean(name)
	var n *node
	err := d.step(OpCreate, name, func() error {
		if err := d.parent("create", name); err != nil {
			return err
		}
		if n = d.names[name]; n == nil {
			n = &node{}
			d.change(change{dir: path.Dir(name), set: name, to: n})
		}
		n.content = nil
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &file{disk: d, name: name, node: n}, nil
}

// Rename implements journal.FS, within one directory.
func (d *Disk) Rename(from, to string) error {
	from, to = path.Clean(from), path.Clean(to)
	return d.step(OpRename, from, func() error {
		n := d.names[from]
		if n == nil || path.Dir(from) != path.Dir(to) {
			return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
		}
		d.change(change{dir: path.Dir(to), set: to, to: n, del: from})
		return nil
	})
}

// Mkdir implements journal.FS.
func (d *Disk) Mkdir(name string) error {
	name = path.Clean(name)
	return d.step(OpMkdir, name, func() error {
		if n := d.names[name]; n != nil {
			return nil
		}
		if err := d.parent("mkdir", name); err != nil {
			return err
		}
		d.change(change{dir: path.Dir(name), set: name, to: &node{dir: true}})
		return nil
	})
}

// SyncDir implements journal.FS.
func (d *Disk) SyncDir(name string) error {
	name = path.Clean(name)
	return d.step(OpSyncDir, name, func() error {
		if n := d.names[name]; n == nil || !n.dir {
			return &fs.PathError{Op: "sync", Path: name, Err: fs.ErrNotExist}
		}
		var left []change
		for _, c := range d.pending {
			if c.dir == name {
				c.apply(d.durable)
			} else {
				left = append(left, c)
			}
		}
		d.pending = left
		return nil
	})
}

func (d *Disk) parent(op, name string) error {
	if n := d.names[path.Dir(name)]; n == nil || !n.dir {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return nil
}

func (d *Disk) change(c change) {
	c.apply(d.names)
	d.pending = append(d.pending, c)
}

// Files returns the content of all files, by name.
func (d *Disk) Files() map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	files := map[string]string{}
	for name, n := range d.names {
		if !n.dir {
			files[name] = string(n.content)
		}
	}
	return files
}

// Put sets the content of a file, durably and with its directories, or removes it if content is
// nil: damage from outside.
func (d *Disk) Put(name string, content []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	name = path.Clean(name)
	for _, names := range []map[string]*node{d.names, d.durable} {
		for dir := path.Dir(name); names[dir] == nil; dir = path.Dir(dir) {
			names[dir] = &node{dir: true}
		}
		delete(names, name)
		if content != nil {
			names[name] = &node{content: slices.Clone(content), synced: slices.Clone(content)}
		}
	}
}

// file is a file that is being written.
type file struct {
	disk *Disk
	name string
	node *node
}

func (f *file) Write(b []byte) (int, error) {
	err := f.disk.step(OpWrite, f.name, func() error { f.node.content = append(f.node.content, b...); return nil })
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

func (f *file) Sync() error {
	return f.disk.step(OpSync, f.name, func() error { f.node.synced = slices.Clone(f.node.content); return nil })
}

func (f *file) Close() error { return nil }

// Kill returns the disk as the next process finds it when the process was killed and the host ran
// on: all that was done is there. The disk itself must not be used any more.
func (d *Disk) Kill() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &Disk{names: d.names, durable: d.durable, pending: d.pending}
}

// MostUndecided is how many changes of names that are not durable PowerLoss can have survive or
// not.
const MostUndecided = 12

// Undecided is how many changes of names are not durable.
func (d *Disk) Undecided() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.pending)
}

// PowerLoss returns every disk that a loss of power at this moment can leave, without duplicates:
// any subset of the names that are not durable, and for content that is not durable nothing, half,
// all, or zeros. Each is independent of d.
func (d *Disk) PowerLoss() []*Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.pending) > MostUndecided {
		panic(fmt.Sprintf("memdisk: %d changes of names are not durable, the model enumerates at most %d",
			len(d.pending), MostUndecided))
	}
	var disks []*Disk
	seen := map[string]bool{}
	for subset := range 1 << len(d.pending) {
		names := maps.Clone(d.durable)
		for i, c := range d.pending {
			if subset>>i&1 != 0 {
				c.apply(names)
			}
		}
		for _, survives := range contents {
			disk := after(names, survives)
			if state := disk.fingerprint(); !seen[state] {
				seen[state] = true
				disks = append(disks, disk)
			}
		}
	}
	return disks
}

// contents are the ways in which content that was not synced survives.
var contents = []func(n *node) []byte{
	func(n *node) []byte { return n.synced },
	func(n *node) []byte { return n.content },
	func(n *node) []byte { return n.content[:len(n.content)/2] },
	func(n *node) []byte { return make([]byte, len(n.content)) },
}

// after makes the disk with these names. What lies in a directory that is gone is gone.
func after(names map[string]*node, survives func(*node) []byte) *Disk {
	d := New()
	for _, name := range slices.Sorted(maps.Keys(names)) {
		n := names[name]
		if name == "." || d.names[path.Dir(name)] == nil {
			continue
		}
		kept := &node{dir: n.dir, content: slices.Clone(n.content), synced: slices.Clone(n.content)}
		if !n.dir && string(n.content) != string(n.synced) {
			kept.content = slices.Clone(survives(n))
			kept.synced = slices.Clone(kept.content)
		}
		d.names[name], d.durable[name] = kept, kept
	}
	return d
}

func (d *Disk) fingerprint() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		fmt.Fprintf(&b, "%q %v %q\n", name, d.names[name].dir, d.names[name].content)
	}
	return b.String()
}
