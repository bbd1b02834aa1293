package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// Status is what reading a file came to.
type Status string

// What reading a file can come to.
const (
	// Absent means that there is no such file, and no trace that there was one.
	Absent Status = "Absent"
	// Valid means that it was read, and is what was written.
	Valid Status = "Valid"
	// Corrupt means that it is there, or must have been, and is not what was written. Nothing is
	// concluded from it.
	Corrupt Status = "Corrupt"
	// Newer means that an agent of a later release wrote it in a form that this one does not know.
	Newer Status = "Newer"
	// Unreadable means that the volume answered with an error.
	Unreadable Status = "Unreadable"
)

// Format is the version of the envelope. Fields of the content may be added without raising it: an
// agent that does not know one says Newer and leaves the file alone, because it would drop the
// field at its next write.
const Format = 1

// envelope is the form of each file. The checksum covers exactly the bytes of content.
type envelope struct {
	Format   int             `json:"format"`
	Kind     string          `json:"kind"`
	Checksum string          `json:"checksum"`
	Content  json.RawMessage `json:"content"`
}

func checksum(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func encode(kind string, content any) ([]byte, error) {
	inner, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", kind, err)
	}
	file, err := json.Marshal(envelope{Format: Format, Kind: kind, Checksum: checksum(inner), Content: inner})
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", kind, err)
	}
	if len(file) >= MaxFileBytes {
		return nil, fmt.Errorf("encode %s: %d bytes are more than the %d allowed", kind, len(file), MaxFileBytes)
	}
	return append(file, '\n'), nil
}

// decode reads a file into content and says what it came to; the error says why, in words.
func decode(kind string, file []byte, content any) (Status, error) {
	var e envelope
	// The format comes first and alone: a later one may have any other fields.
	var format struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(file, &format); err != nil {
		return Corrupt, fmt.Errorf("%s is cut off or damaged: %w", kind, err)
	}
	if format.Format > Format {
		return Newer, fmt.Errorf("%s has format %d, written by a newer agent; this one knows formats up to %d", kind,
			format.Format, Format)
	}
	if err := strict(file, &e); err != nil {
		return Corrupt, fmt.Errorf("%s is damaged: %w", kind, err)
	}
	switch {
	case e.Format != Format:
		return Corrupt, fmt.Errorf("%s has format %d, which never existed", kind, e.Format)
	case e.Kind != kind:
		return Corrupt, fmt.Errorf("file is a %q, not a %s", e.Kind, kind)
	case e.Checksum != checksum(e.Content):
		return Corrupt, fmt.Errorf("%s is damaged: its checksum does not match", kind)
	}
	if err := strict(e.Content, content); err != nil {
		return Newer, fmt.Errorf("%s is not damaged and not known in this form, written by a newer agent: %w", kind,
			err)
	}
	return Valid, nil
}

func strict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the end")
	}
	return nil
}

// read reads one file of a kind.
func read(volume FS, name, kind string, content any) ([]byte, Status, error) {
	file, err := volume.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, Absent, nil
	case err != nil:
		return nil, Unreadable, fmt.Errorf("read %s: %w", kind, err)
	}
	status, err := decode(kind, file, content)
	return file, status, err
}
