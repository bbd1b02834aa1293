//go:build e2e

package e2e

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/backup/sweep"
	"helenus.io/helenus/test/e2e/scene"
)

const (
	// abandoned is how many files lie in the store that no backup has ever named. Deletion is how
	// long it takes to delete a file, and listing to list all: a sweep has a middle to die in.
	abandoned = 300
	deletion  = 100 * time.Millisecond
	listing   = 2 * time.Second
)

// TestSweepsAndDeaths: what no backup needs is swept while a backup is taken that needs some of it
// again. Operators are killed in the middle of it, one is suspended and continues beside its
// successor, and the store fails; its clock is an hour late. What is marked stays for a day. Each
// backup stays whole, and in the end only what they need is left.
func TestSweepsAndDeaths(t *testing.T) {
	onlyInFull(t)
	ring := forGrowth(t, "e2e-sweeps")
	onlyHere(t, ring.Scene)
	const table = scene.Keyspace + ".rows"
	trouble := &troubled{}
	in := bucket(t, ring, func(service http.Handler) http.Handler {
		trouble.Handler = slowly(service)
		return trouble
	})
	seed := uint64(time.Now().UnixNano()) //nolint:gosec // it is a seed
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	soon := func(most time.Duration) time.Duration { return time.Duration(random.Int64N(int64(most))) }
	expires := func(s *v1alpha1.CassandraBackupSpec) { s.DeletionPolicy = v1alpha1.BackupDelete }
	remove := func(b *v1alpha1.CassandraBackup) {
		t.Helper()
		took(t, "backup "+b.Name+" is deleted", func() error {
			return errors.Join(ring.Kubernetes.Client.Delete(t.Context(), b), ring.Gone(t.Context(), b))
		})
	}

	in.SetClock(-8 * 24 * time.Hour)
	var first, kept, last *v1alpha1.CassandraBackup
	took(t, "the ring is backed up, and again without a table", func() (err error) {
		if first, err = ring.BackUp(t.Context(), "first", "main", expires); err == nil {
			kept, err = ring.BackUp(t.Context(), "kept", "main", expires,
				func(s *v1alpha1.CassandraBackupSpec) { s.ExcludeTables = []string{table} })
		}
		return err
	})
	for i := range abandoned {
		content := fmt.Sprintf("file %d", i)
		key := format.BlobKey(string(ring.UID), fmt.Sprintf("%x", sha256.Sum256([]byte(content))))
		if err := in.Put(t.Context(), key, strings.NewReader(content), int64(len(content))); err != nil {
			t.Fatal(err)
		}
	}
	in.SetClock(-time.Hour)
	remove(first)

	leader := ""
	die := func(after time.Duration) (err error) {
		leader, err = ring.KillLeader(t.Context(), leader, after)
		return err
	}
	// sweeps has an operator sweep, unless one has since a time.
	sweeps := func(since time.Time) {
		t.Helper()
		took(t, "the store is swept", func() error { return errors.Join(die(0), ring.Swept(t.Context(), in, since)) })
	}
	began := time.Now()
	for range 3 {
		if err := die(soon(3 * time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	sweeps(began)
	if left, _ := unneeded(t, in, ring); left < abandoned {
		t.Errorf("%d of %d files are left, and should be for a day more", left, abandoned)
	}

	aDayPasses(t, in, ring)
	ended, deaths := make(chan error, 1), []struct {
		of string
		do func() error
	}{
		{"the operator", func() error { return die(soon(8 * time.Second)) }},
		{"the operator, which continued beside its successor", func() error {
			rest(t, soon(8*time.Second))
			thaw, err := ring.FreezeLeader(t.Context())
			if err != nil {
				return err
			}
			rest(t, soon(8*time.Second))
			return thaw(t.Context())
		}},
		{"the store", func() error {
			trouble.on.Store(true)
			defer trouble.on.Store(false)
			rest(t, 5*time.Second+soon(10*time.Second))
			return nil
		}},
	}
	began = time.Now()
	go func() {
		var err error
		last, err = ring.BackUp(t.Context(), "last", "main")
		ended <- err
	}()
	rest(t, soon(20*time.Second))
	for i := range 3 * len(deaths) {
		left, _ := unneeded(t, in, ring)
		t.Logf("%6.1fs  %d files that nobody needs are left", time.Since(began).Seconds(), left)
		death := deaths[i%len(deaths)]
		took(t, death.of+" has died", death.do)
	}
	sweeps(began)
	took(t, "the backup beside it has ended", func() error { return <-ended })
	if !slices.ContainsFunc(in.Asked(began), func(a scene.Asked) bool {
		return a.Method == http.MethodPut && strings.HasPrefix(a.Key, format.PinPrefix(string(ring.UID)))
	}) {
		t.Error("it needed nothing that was marked")
	}
	for _, b := range []*v1alpha1.CassandraBackup{kept, last} {
		if err := whole(t, in, b, len(b.Status.Nodes)); err != nil {
			t.Errorf("backup %s: %v", b.Name, err)
		}
		took(t, "backup "+b.Name+" is verified", func() error { return ring.Verify(t.Context(), b) })
	}

	remove(kept)
	for range 2 { // what is marked by the first is deleted by the second
		aDayPasses(t, in, ring)
		sweeps(time.Now())
	}
	if left, all := unneeded(t, in, ring); left > 0 || all == 0 {
		t.Errorf("%d of %d files are left that no backup needs", left, all)
	}
	if err := whole(t, in, last, len(last.Status.Nodes)); err != nil {
		t.Errorf("backup %s: %v", last.Name, err)
	}
}

// slowly has deletions and lists of files take their time.
func slowly(service http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var takes time.Duration
		switch files := format.BlobPrefix(""); {
		case r.Method == http.MethodDelete && strings.Contains(r.URL.Path, files):
			takes = deletion
		case strings.HasSuffix(r.URL.Query().Get("prefix"), files):
			takes = listing
		}
		select {
		case <-time.After(takes):
		case <-r.Context().Done():
		}
		service.ServeHTTP(w, r)
	})
}

// aDayPasses has the last sweep be a day and an hour earlier than it was. No node may be in the
// middle of a backup: it would have taken a day.
func aDayPasses(t *testing.T, in store.Store, ring *scene.Ring) {
	t.Helper()
	const passed = 25 * time.Hour
	uid := string(ring.UID)
	marks, err := sweep.LastMarks(t.Context(), in, uid)
	if err != nil || marks == nil {
		t.Fatalf("marks %+v, %v", marks, err)
	}
	was := format.MarksKey(uid, marks.At)
	marks.At = marks.At.Add(-passed)
	for i := range marks.Sets {
		marks.Sets[i].Since = marks.Sets[i].Since.Add(-passed)
	}
	text, err := json.Marshal(marks)
	if err == nil {
		err = errors.Join(in.Put(t.Context(), format.MarksKey(uid, marks.At), strings.NewReader(string(text)),
			int64(len(text))), in.Delete(t.Context(), was))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// unneeded is how many files in a store neither a manifest nor a pin names, of all.
func unneeded(t *testing.T, in store.Store, ring *scene.Ring) (left, all int) {
	t.Helper()
	uid := string(ring.UID)
	needed, manifests := map[string]bool{}, []string{}
	err := errors.Join(
		in.List(t.Context(), format.PinPrefix(uid), func(o store.Object) error {
			sum, _, _ := strings.Cut(strings.TrimPrefix(o.Key, format.PinPrefix(uid)), "/")
			needed[sum] = true
			return nil
		}),
		in.List(t.Context(), format.ManifestPrefix(uid), func(o store.Object) error {
			manifests = append(manifests, o.Key)
			return nil
		}))
	for _, key := range manifests {
		m, wrong := sweep.Read[format.Manifest](t.Context(), in, key)
		if err = errors.Join(err, wrong); wrong != nil {
			continue
		}
		for _, table := range m.Tables {
			for _, s := range table.SSTables {
				for _, f := range s.Files {
					needed[f.BlobName()] = true
				}
			}
		}
	}
	err = errors.Join(err, in.List(t.Context(), format.BlobPrefix(uid), func(o store.Object) error {
		all++
		if !needed[o.Key[strings.LastIndex(o.Key, "/")+1:]] {
			left++
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	return left, all
}
