package journal

import (
	"bytes"
	"fmt"
)

const (
	// Path is the journal on the data volume.
	Path = Dir + "/journal.json"
	// PreviousPath is the version before the last write: for a user who repairs a damaged volume,
	// never read by itself.
	PreviousPath = Dir + "/journal.previous.json"
	kind         = "journal"
)

// Store keeps one document of a type durably. It is not safe for use by several goroutines: a
// document has one writer.
type Store[T any] struct {
	volume  FS
	written []byte // the file as it is on the volume; nil if there is none
	unsure  bool   // the last write failed: the volume holds written or what came after it
}

// OpenStore reads the document of a volume. The store is nil unless the status is Valid or Absent;
// with Absent the document is the zero value. The error says in words why the status is neither.
// What is returned is durable; nothing is written.
func OpenStore[T any](volume FS) (*Store[T], T, Status, error) {
	var document, previous, zero T
	file, status, err := read(volume, Path, kind, &document)
	switch status {
	case Valid:
		// An agent that was killed may have left a name that is not durable yet. Acted on and then
		// lost, it would be a memory that goes back in time.
		if err := volume.SyncDir(Dir); err != nil {
			return nil, zero, Unreadable, fmt.Errorf("make what was read of the %s durable: %w", kind, err)
		}
		return &Store[T]{volume: volume, written: file}, document, Valid, nil
	case Absent:
	default:
		return nil, zero, status, err
	}
	// The previous version is written after the first document and never removed.
	switch _, status, err := read(volume, PreviousPath, kind, &previous); status {
	case Absent:
		return &Store[T]{volume: volume}, zero, Absent, nil
	case Unreadable:
		return nil, zero, Unreadable, err
	default:
		return nil, zero, Corrupt, fmt.Errorf("%s is gone while its previous version, %s, is there", Path, PreviousPath)
	}
}

// Put makes a document durable before it returns. After an error the old or the new one is on the
// volume, and the next Put rewrites everything. A document that is surely on the volume is not
// written again.
func (s *Store[T]) Put(document T) error {
	file, err := encode(kind, document)
	if err != nil {
		return err
	}
	if !s.unsure && bytes.Equal(file, s.written) {
		return nil
	}
	s.unsure = true
	if err := s.write(file); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	s.written, s.unsure = file, false
	return nil
}

func (s *Store[T]) write(file []byte) error {
	if s.written == nil {
		if err := makeDir(s.volume); err != nil {
			return err
		}
	} else if err := replaceFile(s.volume, PreviousPath, s.written); err != nil {
		return err
	}
	if err := replaceFile(s.volume, Path, file); err != nil {
		return err
	}
	return s.volume.SyncDir(Dir)
}
