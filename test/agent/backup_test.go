//go:build cassandra

package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/backup/verify"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
)

// bucket is a store of backups that the pods reach.
func (w *world) bucket() (v1alpha1.BackupStoreSpec, store.Store) {
	w.t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("backups"); err != nil {
		w.t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "10.199.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	server := &http.Server{Handler: gofakes3.New(backend).Server(), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }() // it is closed at the end
	w.top.Cleanup(func() { _ = server.Close() })
	spec := v1alpha1.BackupStoreSpec{S3: &v1alpha1.S3Store{Bucket: "backups", Prefix: "shop", Region: "eu-1",
		Endpoint: "http://" + listener.Addr().String(), SecretName: "keys"}}
	keys := map[string][]byte{v1alpha1.KeyAccessKeyID: []byte("id"), v1alpha1.KeySecretAccessKey: []byte("key")}
	w.api.Put("/api/v1/namespaces/"+namespace+"/secrets/keys", corev1.Secret{Data: keys})
	to, err := store.Open(spec, keys)
	if err != nil {
		w.t.Fatal(err)
	}
	return spec, to
}

func object(t *testing.T, from store.Store, key string) []byte {
	t.Helper()
	content, err := from.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestBackup has a node upload what it holds, twice: each file of its snapshot is in the store by
// its hash, and of what is unchanged nothing is sent again. The agent is killed while it uploads.
func TestBackup(t *testing.T) {
	w := newWorld(t)
	p := w.newPod(0)
	w.setSeeds(p.address)
	spec, to := w.bucket()
	p.start()
	w.awaitEmpty(p)
	w.form(p)
	client := openShop(t, net.JoinHostPort(p.address, "9042"))
	if err := client.session.Query(`CREATE INDEX by_v ON shop.rows (v)`).ExecContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for k := range 200 {
		if err := client.session.Query(`INSERT INTO shop.rows (k, v) VALUES (?, ?)`, -1-k, "before").
			ExecContext(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	client.close("before the backup")
	member := w.record(p.name).Status.HostID
	do := func(id, of string, kind v1alpha1.OperationType, a *v1alpha1.OperationArguments) *v1alpha1.OperationStatus {
		t.Helper()
		began := time.Now()
		s := w.operate(t, p, of+"/"+id, kind, a)
		t.Logf("%s %s took %.2f s", kind, id, time.Since(began).Seconds())
		if s.Phase != v1alpha1.OperationSucceeded {
			t.Fatalf("%s: %+v", kind, s)
		}
		return s
	}
	had, blobs := map[string]bool{}, [2]int{}
	for i, id := range []string{"20260301T030000Z-1", "20260301T040000Z-2"} {
		tag := v1alpha1.BackupTagPrefix + id
		do(id, "snapshot", v1alpha1.OperationSnapshot, &v1alpha1.OperationArguments{Tag: tag})
		about := &v1alpha1.OperationArguments{Backup: &v1alpha1.BackupArguments{ID: id, Store: spec}}
		if i == 0 {
			about.Backup.Bandwidth = 64 << 10 // so that it takes its time
			w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) {
				s.Operations = []v1alpha1.OperationIntent{{Intent: v1alpha1.Intent{ID: "upload/" + id},
					Type: v1alpha1.OperationUpload, Arguments: about}}
			})
			w.await(p.name, "it uploads", time.Minute, func(r *v1alpha1.CassandraNode) bool {
				o := r.Status.Operation("upload/" + id)
				return o != nil && strings.Contains(o.Message, " bytes, ")
			})
			p.kill(p.agent.Process.Pid, syscall.SIGKILL)
			_ = p.agent.Wait()
			p.startAgent()
		}
		u := do(id, "upload", v1alpha1.OperationUpload, about).Uploaded
		if u == nil || u.Member != member || u.Files == 0 || u.TakenAt == nil {
			t.Fatalf("uploaded %+v", u)
		}
		text := object(t, to, format.ManifestKey(string(clusterUID), id, member))
		m, err := format.Decode[format.Manifest](text)
		if err != nil {
			t.Fatal(err)
		}
		in, fresh := map[string]string{}, int64(0)
		for _, table := range m.Tables {
			for _, s := range table.SSTables {
				known := had[table.ID+s.Name] // else Cassandra has compacted it of others
				had[table.ID+s.Name] = true
				for _, f := range s.Files {
					blobs[i]++
					if i > 0 && !had[f.SHA256] {
						t.Logf("%s of %s.%s %s is new, %d bytes", f.Name, table.Keyspace, table.Name, s.Name, f.Size)
						fresh += f.Size
						if table.Keyspace == "shop" && known {
							t.Errorf("%s of %s.%s is sent again, and nobody has written", f.Name, s.Name, table.Name)
						}
					}
					had[f.SHA256] = true
					content := object(t, to, format.BlobKey(string(clusterUID), f.SHA256))
					if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != f.SHA256 {
						t.Errorf("the object of %s of %s.%s has another content", f.Name, s.Name, table.Name)
					}
					for _, c := range f.Unpacked() {
						name := filepath.Join(table.Keyspace, table.Directory(), "snapshots", tag, s.Name+"-"+c.Name)
						in[name], content = string(content[:c.Size]), content[c.Size:]
					}
				}
			}
		}
		if i > 0 && u.NewBytes != fresh {
			t.Errorf("%d bytes are new, and %d were sent", fresh, u.NewBytes)
		}
		data, index := filepath.Join(p.root, layout.DataDir, "data"), false
		for _, path := range strings.Fields(run(t, "find", data, "-path", "*/snapshots/"+tag+"/*", "-type", "f")) {
			name, _ := filepath.Rel(data, path)
			base := filepath.Base(name)
			if base == "manifest.json" || base == "schema.cql" || strings.HasPrefix(name, "system/") {
				continue
			}
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if in[name] != string(content) {
				t.Errorf("%s has another content in the store", name)
			}
			delete(in, name)
			index = index || strings.Contains(name, "/.by_v/")
		}
		if len(in) > 0 || !index {
			t.Errorf("the manifest has %q beside, index %t", slices.Collect(maps.Keys(in)), index)
		}
		t.Logf("%d files are in %d blobs", u.Files, blobs[i])
		do(id, "complete", v1alpha1.OperationCompleteBackup, &v1alpha1.OperationArguments{
			Backup: &v1alpha1.BackupArguments{ID: id, Store: spec, Members: []string{member}, ClusterSpec: "{}"}})
		b, err := format.Decode[format.Backup](object(t, to, format.BackupKey(string(clusterUID), id)))
		if err != nil || len(b.Nodes) != 1 || b.Bytes != u.Bytes || b.Replication["shop"]["dc1"] != "1" {
			t.Errorf("description %+v, %v", b, err)
		}
		do(id, "clear", v1alpha1.OperationClearSnapshot, &v1alpha1.OperationArguments{Tag: tag})
	}

	// A bit flips in the store: it is found, and the next backup mends it, for those before, too.
	verified := func(id string) *facts.VerifiedBackup {
		t.Helper()
		found, err := verify.Backup(t.Context(), to, string(clusterUID), id, 100, 0, 0, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	last := "20260301T040000Z-2"
	if found := verified(last); len(found.Damaged) > 0 || found.FilesRead == 0 {
		t.Fatalf("nothing has happened to it: %+v", found.Damaged)
	}
	m, err := format.Decode[format.Manifest](object(t, to, format.ManifestKey(string(clusterUID), last, member)))
	if err != nil {
		t.Fatal(err)
	}
	of := slices.IndexFunc(m.Tables,
		func(table format.Table) bool { return table.Keyspace == "shop" && table.Name == "rows" })
	file := m.Tables[of].SSTables[len(m.Tables[of].SSTables)-1].Files[0] // a pack
	key := format.BlobKey(string(clusterUID), file.SHA256)
	content := object(t, to, key)
	content[0] ^= 1
	if err := to.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if err := to.Put(t.Context(), key, bytes.NewReader(content), int64(len(content))); err != nil {
		t.Fatal(err)
	}
	if found := verified(last); len(found.Damaged) != len(file.Unpacked()) || found.Damaged[0].Table != "rows" ||
		!strings.Contains(found.Damaged[0].Why, "is in a pack") {
		t.Errorf("found %+v", found.Damaged)
	}
	id := "20260301T050000Z-3"
	about := &v1alpha1.OperationArguments{Backup: &v1alpha1.BackupArguments{ID: id, Store: spec,
		Members: []string{member}}}
	do(id, "snapshot", v1alpha1.OperationSnapshot, &v1alpha1.OperationArguments{Tag: v1alpha1.BackupTagPrefix + id})
	do(id, "upload", v1alpha1.OperationUpload, about)
	do(id, "complete", v1alpha1.OperationCompleteBackup, about)
	for _, id := range []string{last, id} {
		if found := verified(id); len(found.Damaged) > 0 {
			t.Errorf("%s is not mended: %+v", id, found.Damaged)
		}
	}
}
