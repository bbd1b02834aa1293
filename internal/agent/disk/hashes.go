package disk

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"sync"
	"syscall"
	"time"
)

// ownDir is the agent's on the data volume, and hashesFile lies there.
const (
	ownDir     = ".helenus"
	hashesFile = "hashes"
)

const (
	// settled is how old the content of a file must be until another one surely has another time.
	settled = 10 * time.Second
	// hashDays is for how long a hash is used, and less than spreadDays longer, by the file: so not
	// all are over in one backup.
	hashDays, spreadDays = 30, 16
	// saveEvery is how much work an agent that is killed loses.
	saveEvery = 10 * time.Second
	// mostBytes of hashes are read: those of 200,000 files.
	mostBytes = 14 << 20
)

// Identity of a file is another one once its content is.
type Identity [sha256.Size]byte

// Identify an open file by its inode, its size, when its content changed, and names. It has no
// identity if that was a moment ago, or if it is of no disk. When the inode changed says nothing: a
// snapshot is a hard link, which changes it.
func Identify(file any, now time.Time, names ...string) (id Identity, is bool) {
	opened, is := file.(interface{ Stat() (fs.FileInfo, error) })
	if !is {
		return id, false
	}
	info, err := opened.Stat()
	if err != nil || now.Sub(info.ModTime()) < settled {
		return id, false
	}
	inode, is := info.Sys().(*syscall.Stat_t)
	if is {
		id = sha256.Sum256(fmt.Appendf(nil, "%q %d %d %d", names, inode.Ino, info.Size(), info.ModTime().UnixNano()))
	}
	return id, is
}

// Hashes are SHA-256 of files that were read before. They are a cache: what of it cannot be read or
// written is hashed again.
type Hashes struct {
	volume string

	mu      sync.Mutex
	of      map[Identity]savedHash
	savedAt time.Time
}

// savedHash is of a file that was read At so many seconds since 1970, and used since OpenHashes.
type savedHash struct {
	File Identity
	Sum  [sha256.Size]byte
	At   int64
	Used bool
}

// OpenHashes reads those of the volume at a directory; if that is empty, they are not saved.
func OpenHashes(volume string, now time.Time) *Hashes {
	h := &Hashes{volume: volume, of: map[Identity]savedHash{}, savedAt: now}
	root, err := os.OpenRoot(volume)
	if err != nil {
		return h
	}
	defer root.Close() //nolint:errcheck // it was only read
	file, err := root.Open(path.Join(ownDir, hashesFile))
	if err != nil {
		return h
	}
	defer file.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(file, mostBytes))
	if err != nil || len(text) < sha256.Size || sha256.Sum256(text[sha256.Size:]) != [sha256.Size]byte(text) {
		return h
	}
	saved := make([]savedHash, len(text[sha256.Size:])/binary.Size(savedHash{}))
	_, _ = binary.Decode(text[sha256.Size:], binary.BigEndian, saved) // it is what was saved
	for _, s := range saved {
		s.Used = false
		h.of[s.File] = s
	}
	return h
}

// Of a file the hash, if it is known and was worked out not too long ago.
func (h *Hashes) Of(file Identity, now time.Time) (sum [sha256.Size]byte, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, known := h.of[file]
	age := now.Sub(time.Unix(s.At, 0))
	if !known || age < 0 || age >= time.Duration(hashDays+int(file[0])%spreadDays)*24*time.Hour {
		return sum, false
	}
	s.Used = true
	h.of[file] = s
	return s.Sum, true
}

// Keep the hash of a file, and save all now and then.
func (h *Hashes) Keep(file Identity, sum [sha256.Size]byte, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.of[file] = savedHash{file, sum, now.Unix(), true}
	if now.Sub(h.savedAt) >= saveEvery {
		_ = h.save()
		h.savedAt = now
	}
}

// Forget all: one was wrong.
func (h *Hashes) Forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.of)
}

// Save them, at the end only those that were used: other files are gone.
func (h *Hashes) Save(end bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.of, func(_ Identity, s savedHash) bool { return end && !s.Used })
	_ = h.save()
}

// save them whole or not at all.
func (h *Hashes) save() error {
	text, err := binary.Append(make([]byte, sha256.Size), binary.BigEndian, slices.Collect(maps.Values(h.of)))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text[sha256.Size:])
	copy(text, sum[:])
	root, err := os.OpenRoot(h.volume)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // the file is synced
	name := path.Join(ownDir, hashesFile)
	file, err := root.OpenFile(name+unfinished, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(err, root.Remove(name+unfinished))
	}
	return root.Rename(name+unfinished, name)
}
