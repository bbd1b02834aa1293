package sweep

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"

	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/garbage"
	"helenus.io/helenus/internal/backup/store"
)

// large is a store with many blobs, which keeps none of them: ten nodes name nine of ten.
type large struct {
	store.Store
	blobs int
	now   time.Time
	put   int
}

// largeNodes are the nodes, and largeFiles the files of an SSTable.
const largeNodes, largeFiles = 10, 8

func (l *large) List(_ context.Context, prefix string, each func(store.Object) error) error {
	old := store.Object{Size: 1 << 20, Written: l.now.Add(-old)}
	switch prefix {
	case format.BackupPrefix("c"):
		old.Key = format.BackupKey("c", "b1")
		return each(old)
	case format.ManifestPrefix("c"):
		for n := range largeNodes {
			old.Key = format.ManifestKey("c", "b1", fmt.Sprint(n))
			if err := each(old); err != nil {
				return err
			}
		}
	case format.BlobPrefix("c"):
		for n := range l.blobs {
			old.Key = format.BlobKey("c", sumOf(n))
			if err := each(old); err != nil {
				return err
			}
		}
	}
	return nil
}

// Get writes a manifest while it is read.
func (l *large) Get(_ context.Context, key string) (io.ReadCloser, error) {
	var node int
	if _, err := fmt.Sscanf(key, "c/nodes/%d/", &node); err != nil {
		return nil, fmt.Errorf("object %s: %w", key, err)
	}
	out, in := io.Pipe()
	go func() {
		text := bufio.NewWriterSize(in, 64<<10)
		defer in.Close()   //nolint:errcheck // it never fails
		defer text.Flush() //nolint:errcheck // who reads to the end has all
		fmt.Fprint(text, `{"version":1,"backup":"b1","cluster":"c","tables":[{"keyspace":"shop","name":"orders"`)
		before := `,"sstables":[`
		for n, i := node, 0; n < l.blobs*9/10; n, i = n+largeNodes, i+1 {
			if i%largeFiles == 0 {
				fmt.Fprintf(text, `%s{"name":"nb-%d-big","files":[`, before, i)
				before = `]},`
			} else {
				fmt.Fprint(text, ",")
			}
			fmt.Fprintf(text, `{"name":"Data.db","size":1048576,"sha256":%q}`, sumOf(n))
		}
		fmt.Fprint(text, `]}]}]}`)
	}()
	return out, nil
}

func (l *large) Put(_ context.Context, _ string, _ io.Reader, size int64) error {
	l.put += int(size)
	return nil
}

// What a process needs at most that does nothing but sweep, with what the garbage collector leaves.
func BenchmarkSweep(b *testing.B) {
	for b.Loop() {
		runtime.GC()
		ended, most := make(chan bool), make(chan uint64)
		go func() {
			peak := uint64(0)
			for {
				select {
				case <-ended:
					most <- peak
					return
				case <-time.After(time.Millisecond):
					peak = max(peak, resident())
				}
			}
		}()
		l := &large{blobs: 1_000_000, now: time.Now()}
		marks, err := Sweep(b.Context(), l, "c", garbage.Default, time.Now)
		close(ended)
		if err != nil || marks.Blobs != int64(l.blobs) || marks.Marked != int64(l.blobs/10) || l.put == 0 {
			b.Fatalf("%+v, %v", marks, err)
		}
		b.ReportMetric(float64(<-most)/(1<<20), "MiB")
	}
}

// resident is what the runtime has of the system, without what it has given back.
func resident() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}
