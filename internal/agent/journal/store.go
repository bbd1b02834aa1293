package journal

import (
	"bytes"
	"fmt"
)

// Store keeps one document of a type durably: the present version, and the one before it for a person who repairs a damaged volume.
// It is not safe for use by several goroutines: a document has one writer.
type Store[T any] struct {
	volume  FS
	written []byte // the file as it is on the volume; nil if there is none
}

// OpenStore reads the document of a volume. The store is nil unless the status is Valid or Absent; with Absent the document is the zero value. The error says in
// words why the status is neither. Nothing is written.
func OpenStore[T any](volume FS) (*Store[T], T, Status, error) {
	var document, zero T
	status, err := read(volume, Path, kind, &document)
	switch status {
	case Valid:
		written, err := volume.ReadFile(Path)
		if err != nil {
			return nil, zero, Unreadable, fmt.Errorf("read %s: %w", kind, err)
		}
		return &Store[T]{volume: volume, written: written}, document, Valid, nil
	case Absent:
		// The previous version is written after the first document and never removed.
		var previous T
		switch status, err := read(volume, PreviousPath, kind, &previous); status {
		case Absent:
			return &Store[T]{volume: volume}, zero, Absent, nil
		case Unreadable:
			return nil, zero, Unreadable, err
		default:
			return nil, zero, Corrupt, fmt.Errorf("%s is gone while its previous version, %s, is there", Path, PreviousPath)
		}
	default:
		return nil, zero, status, err
	}
}

// Put makes a document durable before it returns. After an error the old or the new one is on the volume, and the next Put writes everything anew. A
// document that is on the volume already is not written again.
func (s *Store[T]) Put(document T) error {
	file, err := encode(kind, document)
	if err != nil {
		return err
	}
	if bytes.Equal(file, s.written) {
		return nil
	}
	if s.written == nil {
		if err := makeDir(s.volume); err != nil {
			return fmt.Errorf("write journal: %w", err)
		}
	} else if err := replaceFile(s.volume, PreviousPath, s.written); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	if err := replaceFile(s.volume, Path, file); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	if err := s.volume.SyncDir(Dir); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	s.written = file
	return nil
}
