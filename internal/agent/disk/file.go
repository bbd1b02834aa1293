package disk

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
)

// ErrContent means that a file has another content than it is to have.
var ErrContent = errors.New("its content is not what was backed up")

const (
	// unfinished ends the name of a file that is being written.
	unfinished = ".helenus-tmp"
	// atOnce is how many bytes are read and written at a time. With the 32 KiB of io.Copy a file
	// costs half as much processor time again.
	atOnce = 256 << 10
)

// HasFile says that a file of a volume is there as it is to be: of this size, and with this SHA-256
// in hexadecimal.
func HasFile(volume *os.Root, name string, size int64, sum string) bool {
	file, err := volume.Open(name)
	if err != nil {
		return false
	}
	defer file.Close() //nolint:errcheck // it was only read
	info, err := file.Stat()
	if err != nil || info.Size() != size {
		return false
	}
	h := sha256.New()
	_, err = io.Copy(h, file)
	return err == nil && sumOf(h) == sum
}

// PlaceFile writes a file that no JVM uses yet, durably and whole, or not at all. It is refused if
// it has another size or SHA-256.
func PlaceFile(volume *os.Root, to string, size int64, sum string, content io.Reader) error {
	if err := volume.MkdirAll(path.Dir(to), 0o750); err != nil {
		return fmt.Errorf("make directory of file %s: %w", to, err)
	}
	file, err := volume.Create(to + unfinished)
	if err != nil {
		return fmt.Errorf("write file %s: %w", to, err)
	}
	h := sha256.New()
	// One byte more would be seen, and no more than that is written of what is too long.
	written, err := io.CopyBuffer(io.MultiWriter(file, h), io.LimitReader(content, size+1),
		make([]byte, min(size+1, atOnce)))
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("write file %s: %w", to, err)
	}
	if written != size || sumOf(h) != sum {
		err = fmt.Errorf("write file %s: %w: SHA-256 %s of %d bytes, not %s of %d", to, ErrContent, sumOf(h), written,
			sum, size)
		return errors.Join(err, volume.Remove(to+unfinished))
	}
	if err := volume.Rename(to+unfinished, to); err != nil {
		return fmt.Errorf("write file %s: %w", to, err)
	}
	for dir := path.Dir(to); ; dir = path.Dir(dir) {
		opened, err := volume.Open(dir)
		if err != nil {
			return fmt.Errorf("write file %s: %w", to, err)
		}
		if err := errors.Join(opened.Sync(), opened.Close()); err != nil {
			return fmt.Errorf("write file %s: %w", to, err)
		}
		if dir == "." {
			return nil
		}
	}
}

func sumOf(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }
