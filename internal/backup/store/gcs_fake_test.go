package store_test

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/store"
)

// emulator is a service beside the one of these tests, such as that of
//
//	go run github.com/fsouza/fake-gcs-server@v1.56.1 -scheme http -backend memory -host 127.0.0.1 -port 4443
//
// It asks nobody for a token, so that is done before it.
var emulator = flag.String("gcs", "", "`URL` of an emulator of Google Cloud Storage that is tried too")

// accountKey is one of a service account.
var accountKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func gcsSecret(change ...string) map[string][]byte {
	der, err := x509.MarshalPKCS8PrivateKey(accountKey())
	if err != nil {
		panic(err)
	}
	key := map[string]string{"type": "service_account", "client_email": "backups@shop.iam.gserviceaccount.com",
		"private_key_id": "1", "token_uri": "https://elsewhere.example/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))}
	for i := 0; i < len(change); i += 2 {
		key[change[i]] = change[i+1]
	}
	content, err := json.Marshal(key)
	if err != nil {
		panic(err)
	}
	return map[string][]byte{v1alpha1.KeyServiceAccountKey: content}
}

// google gives tokens for a key, as Google does, and has objects behind it be read and written with
// the latest of them alone.
type google struct {
	*httptest.Server
	issued
	behind http.Handler
	// lifetime of tokens, in seconds. What a token is asked with may be refused.
	lifetime int
	refuse   func(http.ResponseWriter)
	// public lets everybody read.
	public bool
}

func serveGoogle(t *testing.T, behind http.Handler) *google {
	t.Helper()
	g := &google{behind: behind, lifetime: 3600}
	g.Server = httptest.NewServer(g)
	t.Cleanup(g.Close)
	return g
}

func (g *google) spec() v1alpha1.GCSStore {
	return v1alpha1.GCSStore{Bucket: bucket, Prefix: "some/prefix", Endpoint: g.URL, SecretName: "key"}
}

func (g *google) open(t *testing.T) *store.GCS {
	t.Helper()
	s, err := store.OpenGCS(g.spec(), gcsSecret())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asPod is a store with the identity of the pod, whose tokens are good for one request.
func (g *google) asPod(t *testing.T) *store.GCS {
	t.Helper()
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(g.URL, "http://"))
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // for none of these
	g.lifetime = 1
	spec := g.spec()
	spec.SecretName, spec.ServiceAccount = "", true
	s, err := store.Open(v1alpha1.BackupStoreSpec{GCS: &spec}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s.(*store.GCS)
}

func refuseGoogle(w http.ResponseWriter, status int, reason, message string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":{"code":%d,"message":%q,"errors":[{"domain":"global","reason":%q}]}}`, status, message, reason)
}

func (g *google) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, ofSomebody := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	var asked string
	switch r.URL.Path {
	case "/token":
		asked = g.assertion(r.FormValue("assertion"))
	case "/computeMetadata/v1/instance/service-accounts/default/token":
		asked = r.Header.Get("Metadata-Flavor") + " " + r.FormValue("scopes")
	default:
		if ofSomebody && g.last(token) || !ofSomebody && g.public && r.Method == http.MethodGet {
			g.behind.ServeHTTP(w, r)
		} else {
			refuseGoogle(w, http.StatusUnauthorized, "required", "Anonymous caller does not have access.")
		}
		return
	}
	if g.refuse != nil {
		g.refuse(w)
		return
	}
	fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":%d}`, g.next(asked), g.lifetime)
}

// assertion is who asks for what, if it is signed by the key.
func (g *google) assertion(text string) string {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return "no assertion"
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
	if err := rsa.VerifyPKCS1v15(&accountKey().PublicKey, crypto.SHA256, sum[:], signature); err != nil {
		return err.Error()
	}
	var says struct{ Iss, Scope, Aud string }
	payload, _ := base64.RawURLEncoding.DecodeString(parts[1])
	if err := json.Unmarshal(payload, &says); err != nil {
		return err.Error()
	}
	return says.Iss + " " + says.Scope + " " + strings.TrimPrefix(says.Aud, g.URL)
}

// objects is a service that speaks the JSON API of Google Cloud Storage, as far as stores do.
type objects struct {
	mutex sync.Mutex
	is    map[string][]byte
	// uploads that are not complete, by their session.
	uploads map[string]*partial
	// fault may answer a request itself, or break the answer.
	fault func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool)
	seen  []string
	// keeps is how much of a part is kept, at most; careless does not look at checksums; forgets an
	// upload when it is complete.
	keeps             int
	careless, forgets bool
}

type partial struct {
	name string
	size int64
	has  []byte
	done bool
}

func serveObjects(t *testing.T) (*objects, *google) {
	t.Helper()
	o := &objects{is: map[string][]byte{}, uploads: map[string]*partial{}, keeps: 1 << 30}
	return o, serveGoogle(t, o)
}

func (o *objects) requests() []string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return slices.Clone(o.seen)
}

// inject has a fault happen to so many requests with a method and a Content-Range; any, if these
// are empty.
func (o *objects) inject(times int, method, contentRange string,
	do func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool)) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.fault = func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
		if times == 0 || method != "" && r.Method != method ||
			!strings.HasPrefix(r.Header.Get("Content-Range"), contentRange) {
			return w, false
		}
		times--
		return do(w, r)
	}
}

func crc(content []byte) string {
	sum := crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli))
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}

func (o *objects) said(name string) map[string]string {
	return map[string]string{"name": name, "size": fmt.Sprint(len(o.is[name])), "crc32c": crc(o.is[name]),
		"timeCreated": time.Now().UTC().Format(time.RFC3339Nano), "generation": "7"}
}

func (o *objects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.seen = append(o.seen, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("Content-Range")))
	if o.fault != nil {
		var answered bool
		if w, answered = o.fault(w, r); answered {
			return
		}
	}
	name, ofOne := strings.CutPrefix(r.URL.Path, "/storage/v1/b/"+bucket+"/o/")
	_, there := o.is[name]
	q := r.URL.Query()
	switch {
	case q.Get("upload_id") != "":
		o.part(w, r, q.Get("upload_id"))
	case r.URL.Path == "/upload/storage/v1/b/"+bucket+"/o":
		o.write(w, r, q)
	case r.URL.Path == "/storage/v1/b/"+bucket+"/o":
		o.list(w, q)
	case !ofOne:
		refuseGoogle(w, http.StatusNotFound, "notFound", "The specified bucket does not exist.")
	case !there && q.Get("alt") == "media":
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, "No such object: %s/%s", bucket, name)
	case !there:
		refuseGoogle(w, http.StatusNotFound, "notFound", "No such object: "+bucket+"/"+name)
	case r.Method == http.MethodDelete:
		delete(o.is, name)
		w.WriteHeader(http.StatusNoContent)
	case q.Get("alt") == "media":
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(o.is[name]))
	default:
		_ = json.NewEncoder(w).Encode(o.said(name))
	}
}

// write writes an object in two pieces, of which the first says what it is, or begins an upload in
// parts.
func (o *objects) write(w http.ResponseWriter, r *http.Request, q url.Values) {
	if q.Get("uploadType") == "resumable" {
		u := &partial{name: q.Get("name")}
		_, _ = fmt.Sscan(r.Header.Get("X-Upload-Content-Length"), &u.size)
		if _, there := o.is[u.name]; there && q.Get("ifGenerationMatch") == "0" {
			refuseGoogle(w, http.StatusPreconditionFailed, "conditionNotMet", "Condition not met.")
			return
		}
		id := rand.Text()
		o.uploads[id] = u
		w.Header().Set("Location", "https://elsewhere.example"+r.URL.Path+"?upload_id="+id)
		return
	}
	_, of, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	pieces := multipart.NewReader(r.Body, of["boundary"])
	var is struct{ Name, CRC32C string }
	first, err := pieces.NextPart()
	if err == nil {
		err = json.NewDecoder(first).Decode(&is)
	}
	var content []byte
	if second, other := pieces.NextPart(); err == nil && other == nil {
		content, err = io.ReadAll(second)
	}
	_, there := o.is[is.Name]
	switch {
	case err != nil, is.CRC32C != crc(content):
		refuseGoogle(w, http.StatusBadRequest, "invalid", "Provided CRC32C doesn't match calculated CRC32C.")
	case there && q.Get("ifGenerationMatch") == "0":
		refuseGoogle(w, http.StatusPreconditionFailed, "conditionNotMet", "Condition not met.")
	default:
		o.is[is.Name] = content
		_ = json.NewEncoder(w).Encode(o.said(is.Name))
	}
}

func (o *objects) part(w http.ResponseWriter, r *http.Request, id string) {
	u, there := o.uploads[id]
	if !there {
		refuseGoogle(w, http.StatusNotFound, "notFound", "Not Found")
		return
	}
	if r.Method == http.MethodDelete {
		delete(o.uploads, id)
		w.WriteHeader(499) // as Google answers
		return
	}
	content, err := io.ReadAll(r.Body)
	if u.done {
		_ = json.NewEncoder(w).Encode(o.said(u.name))
		return
	}
	var first, last, size int64
	if of := r.Header.Get("Content-Range"); !strings.HasPrefix(of, "bytes */") {
		_, wrong := fmt.Sscanf(of, "bytes %d-%d/%d", &first, &last, &size)
		if wrong != nil || first != int64(len(u.has)) || size != u.size ||
			err == nil && int64(len(content)) != last+1-first || last+1 < size && (last+1)%(256<<10) != 0 {
			refuseGoogle(w, http.StatusBadRequest, "badRequest", "Invalid Content-Range "+of)
			return
		}
		content = content[:min(len(content), o.keeps)]
		if int64(len(u.has)+len(content)) < u.size {
			content = content[:len(content)/(256<<10)*(256<<10)]
		}
		u.has = append(u.has, content...)
	}
	if int64(len(u.has)) < u.size || err != nil {
		if len(u.has) > 0 {
			w.Header().Set("Range", fmt.Sprintf("bytes=0-%d", len(u.has)-1))
		}
		w.WriteHeader(http.StatusPermanentRedirect)
		return
	}
	_, exists := o.is[u.name]
	switch {
	case exists:
		refuseGoogle(w, http.StatusPreconditionFailed, "conditionNotMet", "Condition not met.")
	case o.careless:
		u.has[5]++
		fallthrough
	case r.Header.Get("X-Goog-Hash") == "crc32c="+crc(u.has):
		o.is[u.name], u.done = u.has, true
		if o.forgets {
			delete(o.uploads, id)
		}
		_ = json.NewEncoder(w).Encode(o.said(u.name))
	default:
		refuseGoogle(w, http.StatusBadRequest, "invalid", "Provided CRC32C doesn't match calculated CRC32C.")
	}
}

// list has two objects on a page.
func (o *objects) list(w http.ResponseWriter, q url.Values) {
	var page struct {
		Items         []map[string]string `json:"items,omitempty"`
		Prefixes      []string            `json:"prefixes,omitempty"`
		NextPageToken string              `json:"nextPageToken,omitempty"`
	}
	for _, name := range slices.Sorted(maps.Keys(o.is)) {
		directory, _, in := strings.Cut(strings.TrimPrefix(name, q.Get("prefix")), "/")
		directory, in = q.Get("prefix")+directory+"/", in && q.Get("delimiter") == "/"
		switch {
		case !strings.HasPrefix(name, q.Get("prefix")) || name < q.Get("pageToken") ||
			in && slices.Contains(page.Prefixes, directory):
		case len(page.Items)+len(page.Prefixes) == 2:
			page.NextPageToken = cmp.Or(page.NextPageToken, name)
		case in:
			page.Prefixes = append(page.Prefixes, directory)
		default:
			page.Items = append(page.Items, o.said(name))
		}
	}
	_ = json.NewEncoder(w).Encode(page)
}

// ofEmulator is a store in a new bucket of the emulator.
func ofEmulator(t *testing.T) *store.GCS {
	t.Helper()
	target, err := url.Parse(*emulator)
	if err != nil {
		t.Fatal(err)
	}
	g := serveGoogle(t, &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }})
	spec := g.spec()
	spec.Bucket = fmt.Sprintf("helenus-%d", time.Now().UnixNano())
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, *emulator+"/storage/v1/b?project=shop",
		strings.NewReader(fmt.Sprintf(`{"name":%q}`, spec.Bucket)))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	s, err := store.OpenGCS(spec, gcsSecret())
	if err != nil {
		t.Fatal(err)
	}
	return s
}
