package store_test

import (
	"bytes"
	"cmp"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/store"
)

// azurite is a service beside the one of these tests, such as Azurite's
// http://127.0.0.1:10000/devstoreaccount1, with the key that is known of it.
var azurite = flag.String("azurite", "", "`URL` of an account in an emulator of Azure Blob Storage that is tried too")

const azuriteKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

// blobs is a service that speaks the protocol of Azure Blob Storage, as far as stores do.
type blobs struct {
	*httptest.Server
	mutex sync.Mutex
	// is what each blob has, and staged its blocks that are not committed.
	is     map[string][]byte
	staged map[string]map[string][]byte
	// fault may answer a request itself, or break the answer.
	fault func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool)
	seen  int
	// public lets everybody read.
	public bool
	// token says which ones are taken, instead of signatures by the key.
	token func(string) bool
}

func (b *blobs) authorized(header string) bool {
	if token, is := strings.CutPrefix(header, "Bearer "); is && b.token != nil {
		return b.token(token)
	}
	return b.token == nil && strings.HasPrefix(header, "SharedKey orders:")
}

func (b *blobs) spec() v1alpha1.AzureStore {
	return v1alpha1.AzureStore{Account: "orders", Container: "backups", Prefix: "some/prefix", Endpoint: b.URL,
		SecretName: "key"}
}

func azureSecret() map[string][]byte {
	key := sha256.Sum256([]byte("secret"))
	return map[string][]byte{v1alpha1.KeyAccountKey: []byte(base64.StdEncoding.EncodeToString(key[:]) + "\n")}
}

func (b *blobs) open(t *testing.T) *store.Azure {
	t.Helper()
	s, err := store.OpenAzure(b.spec(), azureSecret())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func serveBlobs(t *testing.T) *blobs {
	t.Helper()
	b := &blobs{is: map[string][]byte{}, staged: map[string]map[string][]byte{}}
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	return b
}

func refuseBlob(w http.ResponseWriter, status int, code string) {
	w.Header().Set("X-Ms-Error-Code", code)
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s.</Message></Error>", code, code)
}

func (b *blobs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mutex.Lock()
	b.seen++
	fault := b.fault
	b.mutex.Unlock()
	if fault != nil {
		var answered bool
		if w, answered = fault(w, r); answered {
			return
		}
	}
	content, err := io.ReadAll(r.Body)
	sum := md5.Sum(content)
	b.mutex.Lock()
	defer b.mutex.Unlock()
	key, inside := strings.CutPrefix(r.URL.Path, "/backups/")
	_, there := b.is[key]
	block := r.URL.Query().Get("comp")
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch signed := b.authorized(r.Header.Get("Authorization")); {
	case err != nil, r.Method == http.MethodPut && block != "blocklist" &&
		r.Header.Get("Content-MD5") != base64.StdEncoding.EncodeToString(sum[:]):
		refuseBlob(w, http.StatusBadRequest, "Md5Mismatch")
	case !signed && (!b.public || !reads):
		refuseBlob(w, http.StatusConflict, "PublicAccessNotPermitted")
	case !inside && r.URL.Path != "/backups":
		refuseBlob(w, http.StatusNotFound, "ContainerNotFound")
	case block == "list":
		b.list(w, r)
	case r.Method == http.MethodGet && block == "blocklist" && b.staged[key] != nil:
		fmt.Fprint(w, "<BlockList><UncommittedBlocks>")
		for id, content := range b.staged[key] {
			fmt.Fprintf(w, "<Block><Name>%s</Name><Size>%d</Size></Block>", id, len(content))
		}
		fmt.Fprint(w, "</UncommittedBlocks></BlockList>")
	case r.Method == http.MethodPut && block == "block":
		if b.staged[key] == nil {
			b.staged[key] = map[string][]byte{}
		}
		b.staged[key][r.URL.Query().Get("blockid")] = content
		w.WriteHeader(http.StatusCreated)
	case r.Method == http.MethodPut && there && r.Header.Get("If-None-Match") == "*":
		refuseBlob(w, http.StatusConflict, "BlobAlreadyExists")
	case r.Method == http.MethodPut && block == "blocklist":
		b.commit(w, key, content)
	case r.Method == http.MethodPut:
		b.is[key] = content
		w.WriteHeader(http.StatusCreated)
	case !there:
		refuseBlob(w, http.StatusNotFound, "BlobNotFound")
	case r.Method == http.MethodDelete:
		delete(b.is, key)
		w.WriteHeader(http.StatusAccepted)
	default:
		r.Header.Set("Range", r.Header.Get("X-Ms-Range"))
		http.ServeContent(w, r, "", time.Now(), bytes.NewReader(b.is[key]))
	}
}

func (b *blobs) commit(w http.ResponseWriter, key string, list []byte) {
	var of struct {
		Latest []string `xml:"Latest"`
	}
	if err := xml.Unmarshal(list, &of); err != nil {
		refuseBlob(w, http.StatusBadRequest, "InvalidXmlDocument")
		return
	}
	var whole []byte
	for _, id := range of.Latest {
		part, there := b.staged[key][id]
		if !there {
			refuseBlob(w, http.StatusBadRequest, "InvalidBlockList")
			return
		}
		whole = append(whole, part...)
	}
	b.is[key] = whole
	delete(b.staged, key)
	w.WriteHeader(http.StatusCreated)
}

// list has two blobs on a page.
func (b *blobs) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	var page strings.Builder
	left, next := 2, ""
	before := ""
	for _, key := range slices.Sorted(maps.Keys(b.is)) {
		directory, _, in := strings.Cut(strings.TrimPrefix(key, q.Get("prefix")), "/")
		in = in && q.Get("delimiter") == "/"
		switch {
		case !strings.HasPrefix(key, q.Get("prefix")) || key < q.Get("marker") || in && directory == before:
		case left == 0:
			next = cmp.Or(next, key)
		case in:
			left--
			before = directory
			fmt.Fprintf(&page, "<BlobPrefix><Name>%s%s/</Name></BlobPrefix>", q.Get("prefix"), directory)
		default:
			left--
			fmt.Fprintf(&page, "<Blob><Name>%s</Name><Properties><Last-Modified>%s</Last-Modified><Content-Length>%d"+
				"</Content-Length></Properties></Blob>", key, time.Now().UTC().Format(http.TimeFormat), len(b.is[key]))
		}
	}
	w.Header().Set("Content-Type", "application/xml")
	fmt.Fprintf(w, "<EnumerationResults><Blobs>%s</Blobs><NextMarker>%s</NextMarker></EnumerationResults>", &page, next)
}

// ofAzurite is a store in a new container of the emulator.
func ofAzurite(t *testing.T) *store.Azure {
	t.Helper()
	spec := v1alpha1.AzureStore{Account: "devstoreaccount1", Prefix: "some/prefix", Endpoint: *azurite,
		Container: fmt.Sprintf("helenus-%d", time.Now().UnixNano()), SecretName: "key"}
	credential, err := container.NewSharedKeyCredential(spec.Account, azuriteKey)
	if err != nil {
		t.Fatal(err)
	}
	c, err := container.NewClientWithSharedKeyCredential(*azurite+"/"+spec.Container, credential, nil)
	if err == nil {
		_, err = c.Create(t.Context(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.OpenAzure(spec, map[string][]byte{v1alpha1.KeyAccountKey: []byte(azuriteKey)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A container is checked as a bucket is; one that everybody can read is refused.
func TestCheckOfAzure(t *testing.T) {
	b := serveBlobs(t)
	s := b.open(t)
	if err := store.Check(t.Context(), s, "me", time.Now()); err != nil {
		t.Error(err)
	}
	if left := slices.Collect(maps.Keys(b.is)); !slices.Equal(left, []string{"some/prefix/encryption/None"}) {
		t.Errorf("the check left %v", left)
	}
	b.fault = func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
		if r.Header.Get("Authorization") != "" {
			return w, false
		}
		refuseBlob(w, http.StatusInternalServerError, "InternalError")
		return w, true
	}
	if err := store.Check(t.Context(), s, "me", time.Now()); reason(err) != v1alpha1.ReasonStoreUnreachable {
		t.Errorf("whether it is public cannot be told: %v", err)
	}
	b.fault, b.public = nil, true
	if err := store.Check(t.Context(), s, "me", time.Now()); reason(err) != v1alpha1.ReasonBucketPublic {
		t.Errorf("public: %v", err)
	}
	if *azurite != "" {
		if err := store.Check(t.Context(), ofAzurite(t), "me", time.Now()); err != nil {
			t.Error(err)
		}
	}
}

// Of two that write the same at once, one is told that the object exists: the first has removed the
// blocks of the other.
func TestBlocksOfTwoAtOnce(t *testing.T) {
	b := serveBlobs(t)
	all := []*store.Azure{b.open(t)}
	if *azurite != "" {
		all = append(all, ofAzurite(t))
	}
	for _, s := range all {
		want := content(20 << 20)
		first := reads(func() error { return put(s, "key", want) })
		r := io.MultiReader(bytes.NewReader(want[:17<<20]), first, bytes.NewReader(want[17<<20:]))
		if err := s.Put(t.Context(), "key", r, 20<<20); !errors.Is(err, store.ErrExists) {
			t.Errorf("the second: %v", err)
		}
		if got := get(t, s, "key"); !bytes.Equal(got, want) {
			t.Error("other bytes came back")
		}
	}
}

// An upload that was interrupted does not send again the blocks that the service has, unless they
// are of another content.
func TestBlocksAreNotSentAgain(t *testing.T) {
	want, other := content(33<<20), content(33<<20)
	other[9<<20]++
	for name, c := range map[string]struct {
		first []byte
		fault string // of a request when it is tried again
		sent  int
	}{
		"killed": {want, "", 2}, "another content": {other, "", 3}, "blocks are not told": {want, "blocklist", 5},
	} {
		t.Run(name, func(t *testing.T) {
			b := serveBlobs(t)
			sent, most, fault := 0, 4, ""
			b.fault = func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
				comp := r.URL.Query().Get("comp")
				if comp == "block" {
					sent++
				}
				refused := sent == most || r.Method == http.MethodGet && comp != "" && comp == fault
				if refused {
					refuseBlob(w, http.StatusForbidden, "AuthorizationFailure")
				}
				return w, refused
			}
			s := b.open(t)
			if err := put(s, "key", c.first); err == nil {
				t.Fatal("it was not interrupted")
			}
			sent, most, fault = 0, -1, c.fault
			if err := put(s, "key", want); err != nil || sent != c.sent {
				t.Errorf("sent %d blocks, want %d: %v", sent, c.sent, err)
			}
			if got := get(t, s, "key"); !bytes.Equal(got, want) {
				t.Error("it has other bytes")
			}
		})
	}
}

// reads does something when it is read, and is empty.
type reads func() error

func (do reads) Read([]byte) (int, error) { return 0, cmp.Or(do(), io.EOF) }

func TestReadOfAzureIsResumed(t *testing.T) {
	b := serveBlobs(t)
	s, want, broken := b.open(t), content(3<<20), 0
	if err := put(s, "key", want); err != nil {
		t.Fatal(err)
	}
	b.fault = func(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool) {
		if broken++; broken > 6 {
			return w, false
		}
		return &half{ResponseWriter: w, left: 300_000}, false
	}
	if got := get(t, s, "key"); !bytes.Equal(got, want) {
		t.Error("other bytes came back")
	}
}

// Each error names the container and the key, and says what would help.
func TestProblemsOfAzure(t *testing.T) {
	for name, c := range map[string]struct {
		status       int
		code         string
		reason, help string
	}{
		"no container": {404, "ContainerNotFound", v1alpha1.ReasonBucketMissing, "create the container"},
		"wrong key":    {403, "AuthenticationFailed", v1alpha1.ReasonAccessDenied, "in the Secret"},
		"denied":       {403, "AuthorizationPermissionMismatch", v1alpha1.ReasonAccessDenied, "in the Secret"},
		"unknown":      {501, "NotImplemented", v1alpha1.ReasonUnsupportedService, "does not know"},
		"broken":       {400, "InvalidInput", v1alpha1.ReasonStoreUnreachable, "400 InvalidInput"},
	} {
		b := serveBlobs(t)
		b.fault = func(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool) {
			refuseBlob(w, c.status, c.code)
			return w, true
		}
		err := put(b.open(t), "key", content(10))
		if reason(err) != c.reason || !strings.Contains(err.Error(), c.help) ||
			!strings.Contains(err.Error(), "some/prefix/key of container backups") {
			t.Errorf("%s: %s: %v", name, reason(err), err)
		}
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.AzureStore, map[string][]byte)
		reason string
	}{
		"no key": {func(_ *v1alpha1.AzureStore, s map[string][]byte) { clear(s) }, v1alpha1.ReasonSecretInvalid},
		"other key": {func(_ *v1alpha1.AzureStore, s map[string][]byte) { s[v1alpha1.KeyAccountKey] = []byte("?") },
			v1alpha1.ReasonSecretInvalid},
		"endpoint": {func(s *v1alpha1.AzureStore, _ map[string][]byte) { s.Endpoint = "ftp://x" },
			v1alpha1.ReasonEndpointInvalid},
	} {
		spec, secret := serveBlobs(t).spec(), azureSecret()
		c.change(&spec, secret)
		if _, err := store.OpenAzure(spec, secret); reason(err) != c.reason {
			t.Errorf("%s: %v", name, err)
		}
	}
}
