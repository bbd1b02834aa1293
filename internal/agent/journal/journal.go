package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// Path is the journal on the data volume.
	Path = Dir + "/journal.json"
	// PreviousPath is the version before the last write: for a person who repairs a damaged volume, never read by itself.
	PreviousPath = Dir + "/journal.previous.json"
	kind         = "journal"
)

// Journal holds the present version. Its methods may be called from several goroutines; each that changes something
// returns after the change is durable, or with an error and, in memory, no change.
type Journal struct {
	volume FS
	now    func() time.Time

	mu      sync.Mutex
	content Content
	written []byte // the file as it is on the volume
}

// Open reads the journal of a data volume. The journal is nil unless the status is Valid; the error says in words why the
// status is none of Absent and Valid. Nothing is written.
func Open(volume FS, now func() time.Time) (*Journal, Status, error) {
	j := &Journal{volume: volume, now: now}
	status, err := read(volume, Path, kind, &j.content)
	switch {
	case status == Valid && (j.content.Identity.ClusterUID == "" || j.content.Identity.Node == ""):
		return nil, Corrupt, fmt.Errorf("%s names no node", kind)
	case status == Valid:
		if j.written, err = volume.ReadFile(Path); err != nil {
			return nil, Unreadable, fmt.Errorf("read %s: %w", kind, err)
		}
		return j, Valid, nil
	case status == Absent:
		// The previous version is written after the first journal and never removed.
		switch previous, err := read(volume, PreviousPath, kind, &Content{}); previous {
		case Absent:
			return nil, Absent, nil
		case Unreadable:
			return nil, Unreadable, err
		default:
			return nil, Corrupt, fmt.Errorf("%s is gone while its previous version, %s, is there", Path, PreviousPath)
		}
	}
	return nil, status, err
}

// Create starts the journal of a node on a data volume that has none.
func Create(volume FS, now func() time.Time, identity Identity) (*Journal, error) {
	switch _, status, err := Open(volume, now); status {
	case Absent:
	case Valid:
		return nil, errors.New("create journal: there is one")
	default:
		return nil, fmt.Errorf("create journal: %w", err)
	}
	if identity.ClusterUID == "" || identity.Node == "" {
		return nil, errors.New("create journal: the identity names no cluster uid or no node")
	}
	if err := makeDir(volume); err != nil {
		return nil, fmt.Errorf("create journal: %w", err)
	}
	j := &Journal{volume: volume, now: now}
	return j, j.update(func(c *Content, _ time.Time) error {
		c.Identity = identity
		return nil
	})
}

// Content returns a copy of the present version.
func (j *Journal) Content() Content {
	j.mu.Lock()
	defer j.mu.Unlock()
	copied, err := j.content.clone()
	if err != nil { // the present version has been encoded before
		panic(err)
	}
	return copied
}

// update makes one change durable. A change that changes nothing writes nothing.
func (j *Journal) update(change func(c *Content, now time.Time) error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	next, err := j.content.clone()
	if err != nil {
		return err
	}
	now := j.now().UTC()
	if err := change(&next, now); err != nil {
		return err
	}
	if same, err := equal(j.content, next); err != nil || same {
		return err
	}
	next.Sequence++
	next.WrittenAt = now
	file, err := encode(kind, next)
	if err != nil {
		return err
	}
	if err := j.write(file); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	j.content, j.written = next, file
	return nil
}

func (j *Journal) write(file []byte) error {
	if j.written != nil {
		if err := replaceFile(j.volume, PreviousPath, j.written); err != nil {
			return err
		}
	}
	if err := replaceFile(j.volume, Path, file); err != nil {
		return err
	}
	return j.volume.SyncDir(Dir)
}

func equal(a, b Content) (bool, error) {
	x, err := json.Marshal(a)
	if err != nil {
		return false, err
	}
	y, err := json.Marshal(b)
	return bytes.Equal(x, y), err
}
