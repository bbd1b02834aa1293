package report

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"time"
)

// archive is a tar.gz that does not grow beyond a size.
type archive struct {
	tar     *tar.Writer
	gzip    *gzip.Writer
	out     *counter
	most    int
	root    string
	written time.Time
}

// errFull says that a file was left out.
var errFull = errors.New("left out: the report would be too large")

// reserve is kept for the headers of the files and what went wrong.
const reserve = 256 << 10

type counter struct {
	io.Writer
	n int
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n += n
	return n, err
}

func newArchive(out io.Writer, most int, root string, now time.Time) *archive {
	c := &counter{Writer: out}
	z := gzip.NewWriter(c)
	return &archive{tar: tar.NewWriter(z), gzip: z, out: c, most: most, root: root, written: now}
}

// add a file, unless it could make the archive too large even if nothing of it can be compressed.
func (a *archive) add(name string, content []byte) error {
	if err := a.gzip.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if a.out.n+len(content)+reserve > a.most {
		return errFull
	}
	return a.put(name, content)
}

func (a *archive) put(name string, content []byte) error {
	err := a.tar.WriteHeader(&tar.Header{Name: a.root + "/" + name, Mode: 0o600, Size: int64(len(content)),
		ModTime: a.written, Typeflag: tar.TypeReg})
	if err == nil {
		_, err = a.tar.Write(content)
	}
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func (a *archive) close() error {
	if err := errors.Join(a.tar.Close(), a.gzip.Close()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// tail reads to the end and keeps the last bytes, from the beginning of a line.
func tail(r io.Reader, most int) ([]byte, error) {
	var kept []byte
	cut := false
	buffer := make([]byte, 64<<10)
	for {
		n, err := r.Read(buffer)
		kept = append(kept, buffer[:n]...)
		if len(kept) > 2*most || err != nil && len(kept) > most {
			kept, cut = append([]byte(nil), kept[len(kept)-most:]...), true
		}
		switch {
		case errors.Is(err, io.EOF):
			if at := bytes.IndexByte(kept, '\n'); cut && at >= 0 {
				kept = kept[at+1:]
			}
			return kept, nil
		case err != nil:
			return kept, err
		}
	}
}
