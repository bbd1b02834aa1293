package initd

import (
	"bytes"
	"io"
	"os"
	"sync"
	"time"
)

const (
	keptWords = 512                    // bytes: three lines is what Java says when it refuses its options
	lastWords = 200 * time.Millisecond // for what was written last; all that held the pipe was killed with the JVM
)

// words copies the standard error of a JVM into the container's log and keeps its end: what Java
// says before Cassandra begins to log is nowhere else. Standard output, with Cassandra's log, does
// not come through here.
type words struct {
	done chan struct{}
	mu   sync.Mutex
	tail []byte
}

// hear returns the standard error for a program, to be closed here once that has started.
func hear(log io.Writer) (*words, *os.File, error) {
	from, to, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	w := &words{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for buffer := make([]byte, 4096); ; {
			n, err := from.Read(buffer)
			_, _ = log.Write(buffer[:n]) // a log that cannot be written does not stop the JVM
			w.mu.Lock()
			w.tail = append(w.tail, buffer[:n]...)
			w.tail = w.tail[max(0, len(w.tail)-keptWords):]
			w.mu.Unlock()
			if err != nil {
				_ = from.Close()
				return
			}
		}
	}()
	return w, to, nil
}

// end is what was kept when the program has ended, from the start of a line if something had to go.
func (w *words) end() string {
	select {
	case <-w.done:
	case <-time.After(lastWords):
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := w.tail
	if i := bytes.IndexByte(kept, '\n'); len(kept) == keptWords && i >= 0 {
		kept = kept[i+1:]
	}
	return string(bytes.ToValidUTF8(bytes.TrimSpace(kept), []byte("?")))
}
