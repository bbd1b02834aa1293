package operation

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/disk"
	"helenus.io/helenus/internal/backup/store"
)

// An agent that is killed while it sends a large file sends those parts again that the store does
// not have. Parts of a file that is gone at the next backup are removed.
func TestUploadGoesOnWithinAFile(t *testing.T) {
	b := newBacked(t)
	b.host.DataVolume = b.volume
	backend := s3mem.New()
	if err := errors.Join(backend.CreateBucket("backups"),
		os.Mkdir(filepath.Join(b.volume, ".helenus"), 0o750)); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var sent []string
	var killAt string // the number of the part
	var kill func()
	fake := gofakes3.New(backend).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if number := r.URL.Query().Get("partNumber"); number != "" {
			if sent = append(sent, number); number == killAt {
				kill()
				panic(http.ErrAbortHandler)
			}
		}
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	to, err := store.OpenS3(v1alpha1.S3Store{Bucket: "backups", Region: "eu-1", Endpoint: server.URL},
		map[string][]byte{v1alpha1.KeyAccessKeyID: []byte("someone"), v1alpha1.KeySecretAccessKey: []byte("secret")})
	if err != nil {
		t.Fatal(err)
	}
	b.host.Store = func(context.Context, *v1alpha1.BackupStoreSpec) (store.Store, error) { return to, nil }
	upload := func(id, until string) (message string, parts []string, err error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		mu.Lock()
		sent, kill, killAt = nil, cancel, until
		mu.Unlock()
		message, err = Run(ctx, b.host, &v1alpha1.OperationIntent{Type: v1alpha1.OperationUpload,
			Arguments: &v1alpha1.OperationArguments{Backup: &v1alpha1.BackupArguments{ID: id}}}, nil)
		mu.Lock()
		defer mu.Unlock()
		return message, sent, err
	}
	left := func() int { return len(disk.Uploads(b.volume).Names()) }
	file := func(id, of string) {
		b.snapshot(id, "2026-03-01T03:00:00Z", "shop/"+carts, map[string]string{firstFile: strings.Repeat(of, 30<<20)})
	}

	file("b-1", "a")
	if _, _, err := upload("b-1", "3"); err == nil || left() != 1 {
		t.Fatalf("it was not killed: %v, and of %d files there are lines", err, left())
	}
	message, parts, err := upload("b-1", "")
	if err != nil || !slices.Equal(parts, []string{"3", "4"}) || left() > 0 {
		t.Errorf("%s: sent %v: %v, and of %d files there are lines", message, parts, err, left())
	}
	if size, err := to.Size(t.Context(), blobOf(strings.Repeat("a", 30<<20))); err != nil || size != 30<<20 {
		t.Errorf("it has %d bytes, %v", size, err)
	}

	file("b-2", "b")
	if _, _, err := upload("b-2", "2"); err == nil || left() != 1 {
		t.Fatalf("it was not killed: %v, and of %d files there are lines", err, left())
	}
	b.snapshot("b-3", "2026-03-01T03:00:00Z", "shop/"+carts, map[string]string{"nb-1-big-Data.db": "data"})
	if message, _, err := upload("b-3", ""); err != nil || left() > 0 {
		t.Errorf("%s: %v, and of %d files there are lines", message, err, left())
	}
}
