package store_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/store"
)

// trusted is a certificate of 127.0.0.1 that the process trusts as it trusts those of its image.
var trusted tls.Certificate

func TestMain(m *testing.M) {
	directory, err := os.MkdirTemp("", "trusted")
	if err == nil {
		trusted, err = trust(filepath.Join(directory, "ca.crt"))
	}
	if err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(directory)
	os.Exit(code)
}

func trust(file string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	content := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(file, content, 0o600); err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, os.Setenv("SSL_CERT_FILE", file)
}

// issued are tokens, of which the last one alone is taken.
type issued struct {
	mutex sync.Mutex
	// asked are the requests for them, as far as they matter.
	asked []string
}

func (i *issued) next(asked string) string {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.asked = append(i.asked, asked)
	return fmt.Sprintf("token-%d", len(i.asked))
}

func (i *issued) all() []string {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return slices.Clone(i.asked)
}

func (i *issued) last(token string) bool { return token == fmt.Sprintf("token-%d", len(i.all())) }

// role gives credentials as Amazon does: to pods with EKS Pod Identity and to hosts in JSON, and to
// pods with a web identity in XML.
type role struct {
	*httptest.Server
	issued
	lifetime time.Duration
	// refuse so many requests, by fault.
	refuse int
	fault  http.HandlerFunc
}

// newRole is one for the pod of this test, which has an identity.
func newRole(t *testing.T, lifetime time.Duration) *role {
	t.Helper()
	r := &role{lifetime: lifetime}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	for _, name := range []string{"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
		"AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_REGION"} {
		t.Setenv(name, "")
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("of the pod"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", file)
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", r.URL+"/v1/credentials")
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // for none of these
	return r
}

// webIdentity has the pod of this test be given its identity as a file.
func (r *role) webIdentity(t *testing.T) (file string) {
	t.Helper()
	file = os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "")
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", file)
	t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/backups")
	t.Setenv("AWS_ENDPOINT_URL_STS", r.URL)
	return file
}

// ofTheHost has the host of this test alone have an identity.
func (r *role) ofTheHost(t *testing.T) {
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "")
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", r.URL)
}

func (r *role) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mutex.Lock()
	refuse := r.refuse > 0
	if refuse {
		r.refuse--
	}
	r.mutex.Unlock()
	expires := time.Now().Add(r.lifetime).UTC().Format(time.RFC3339)
	switch {
	case refuse:
		r.fault(w, request)
	case request.URL.Path == "/latest/api/token":
		fmt.Fprint(w, "session")
	case request.URL.Path == "/latest/meta-data/iam/security-credentials/":
		fmt.Fprint(w, "backups")
	case request.Method == http.MethodPost:
		asked := fmt.Sprint(request.FormValue("Action"), " ", request.FormValue("RoleArn"), " ",
			request.FormValue("WebIdentityToken"))
		fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">`+
			`<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>someone</AccessKeyId><SecretAccessKey>secret`+
			`</SecretAccessKey><SessionToken>%s</SessionToken><Expiration>%s</Expiration></Credentials>`+
			`</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, r.next(asked), expires)
	default:
		asked := request.URL.Path + " " + request.Header.Get("Authorization")
		fmt.Fprintf(w, `{"Code":"Success","AccessKeyId":"someone","SecretAccessKey":"secret","Token":%q,`+
			`"Expiration":%q}`, r.next(asked), expires)
	}
}

// asRole is a store in a bucket that takes the latest credentials of a role alone.
func asRole(t *testing.T, r *role) *store.S3 {
	t.Helper()
	service := serve(t, false)
	service.spec.SecretName, service.spec.ServiceAccount = "", true
	service.inject(1<<30, func(request *http.Request) bool {
		return request.Header.Get("Authorization") != "" && !r.last(request.Header.Get("X-Amz-Security-Token"))
	}, func(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool) {
		answer(w, http.StatusBadRequest, "ExpiredToken")
		return w, true
	})
	s, err := store.Open(v1alpha1.BackupStoreSpec{S3: &service.spec}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s.(*store.S3)
}

// Credentials serve for as long as they are good, and a long upload gets new ones.
func TestCredentialsAreRenewed(t *testing.T) {
	for name, c := range map[string]struct {
		lifetime    time.Duration
		least, most int
	}{"good for an hour": {time.Hour, 1, 1}, "good for one request": {0, 5, 5}} {
		t.Run(name, func(t *testing.T) {
			role := newRole(t, c.lifetime)
			if err := put(asRole(t, role), "key", content(20<<20)); err != nil { // a beginning, three parts, an end
				t.Fatal(err)
			}
			if got := len(role.all()); got < c.least || got > c.most {
				t.Errorf("asked %d times", got)
			}
		})
	}
}

// Wherever the identity of the pod comes from, it is asked for as Amazon wants it.
func TestIdentities(t *testing.T) {
	for name, c := range map[string]struct {
		of   func(*testing.T, *role)
		want []string
	}{
		"EKS Pod Identity": {func(*testing.T, *role) {},
			[]string{"/v1/credentials of the pod", "/v1/credentials of the pod"}},
		"web identity": {func(t *testing.T, r *role) {
			file := r.webIdentity(t)
			r.refuse, r.fault = 1, func(w http.ResponseWriter, _ *http.Request) { // renewed meanwhile
				_ = os.WriteFile(file, []byte("renewed"), 0o600)
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprint(w, `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error>`+
					`<Code>IDPCommunicationError</Code></Error></ErrorResponse>`)
			}
		}, []string{"AssumeRoleWithWebIdentity arn:aws:iam::1:role/backups renewed",
			"AssumeRoleWithWebIdentity arn:aws:iam::1:role/backups renewed"}},
		"the host": {func(t *testing.T, r *role) { r.ofTheHost(t) },
			[]string{"/latest/meta-data/iam/security-credentials/backups ",
				"/latest/meta-data/iam/security-credentials/backups "}},
	} {
		t.Run(name, func(t *testing.T) {
			role := newRole(t, 0)
			c.of(t, role)
			s := asRole(t, role)
			if err := put(s, "key", content(10)); err != nil {
				t.Fatal(err)
			}
			if size, err := s.Size(t.Context(), "key"); size != 10 || err != nil {
				t.Errorf("%d bytes, %v", size, err)
			}
			if got := role.all(); !slices.Equal(got, c.want) {
				t.Errorf("asked %q", got)
			}
		})
	}
}

// What is missing is said, within the time of a check, and no token.
func TestNoIdentity(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for name, c := range map[string]struct {
		of     func(*testing.T, *role)
		reason string
		says   string
	}{
		"a host without a role": {func(t *testing.T, r *role) {
			r.ofTheHost(t)
			r.refuse, r.fault = 100, status(http.StatusNotFound)
		}, v1alpha1.ReasonIdentityMissing,
			"AWS_WEB_IDENTITY_TOKEN_FILE and AWS_CONTAINER_CREDENTIALS_FULL_URI are not set"},
		"a host that never answers": {func(t *testing.T, r *role) {
			r.ofTheHost(t)
			r.refuse, r.fault = 100, func(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() }
		}, v1alpha1.ReasonIdentityMissing, "recreate the pod"},
		"no file": {func(t *testing.T, r *role) {
			t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", r.webIdentity(t)+"-gone")
		}, v1alpha1.ReasonIdentityMissing, "no such file"},
		"not trusted": {func(t *testing.T, r *role) {
			r.webIdentity(t)
			r.refuse, r.fault = 100, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprint(w, `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error>`+
					`<Code>AccessDenied</Code><Message>Not authorized to perform sts:AssumeRoleWithWebIdentity`+
					`</Message></Error></ErrorResponse>`)
			}
		}, v1alpha1.ReasonAccessDenied, "sts:AssumeRoleWithWebIdentity: let the trust policy"},
		"no association": {func(_ *testing.T, r *role) { r.refuse, r.fault = 100, status(http.StatusNotFound) },
			v1alpha1.ReasonAccessDenied, "404 Not Found"},
		"nobody there": {func(_ *testing.T, r *role) { r.Close() }, v1alpha1.ReasonStoreUnreachable,
			"connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			role := newRole(t, time.Hour)
			c.of(t, role)
			err := store.Check(t.Context(), asRole(t, role), "me", noon)
			if reason(err) != c.reason || !strings.Contains(err.Error(), c.says) ||
				!strings.Contains(err.Error(), "of bucket "+bucket+": get credentials of the service account: ") {
				t.Errorf("%s: %v", reason(err), err)
			}
			if err != nil && strings.Contains(err.Error(), "of the pod") {
				t.Errorf("tells the token: %v", err)
			}
		})
	}
}

// A role is told what it may not do, and no Secret is blamed.
func TestRoleIsDenied(t *testing.T) {
	for code, says := range map[string]string{"AccessDenied": "allow the role of the service account",
		"InvalidAccessKeyId": "knows the roles of Amazon"} {
		newRole(t, time.Hour)
		service := serve(t, false)
		service.spec.SecretName, service.spec.ServiceAccount = "", true
		service.inject(100, anything, func(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool) {
			answer(w, http.StatusForbidden, code)
			return w, true
		})
		s, err := store.OpenS3(service.spec, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = put(s, "key", nil)
		if reason(err) != v1alpha1.ReasonAccessDenied || !strings.Contains(err.Error(), says) ||
			strings.Contains(err.Error(), "Secret") {
			t.Errorf("%s: %v", code, err)
		}
	}
}

// directory gives tokens as Microsoft Entra ID does, and blobs take the latest alone.
type directory struct {
	*httptest.Server
	issued
	blobs *blobs
	// refused is what it answers instead.
	refused string
}

func newDirectory(t *testing.T) *directory {
	t.Helper()
	d := &directory{blobs: &blobs{is: map[string][]byte{}, staged: map[string]map[string][]byte{}}}
	d.blobs.token = d.last
	d.Server, d.blobs.Server = httptest.NewUnstartedServer(d), httptest.NewUnstartedServer(d.blobs)
	for _, s := range []*httptest.Server{d.Server, d.blobs.Server} {
		s.TLS = &tls.Config{Certificates: []tls.Certificate{trusted}}
		s.StartTLS()
		t.Cleanup(s.Close)
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("of the pod"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"AZURE_CLIENT_ID": "backups", "AZURE_TENANT_ID": "tenant",
		"AZURE_FEDERATED_TOKEN_FILE": file, "AZURE_AUTHORITY_HOST": d.URL + "/"} {
		t.Setenv(name, value)
	}
	return d
}

func (d *directory) spec() v1alpha1.AzureStore {
	spec := d.blobs.spec()
	spec.SecretName, spec.ServiceAccount = "", true
	return spec
}

func (d *directory) open(t *testing.T) *store.Azure {
	t.Helper()
	s, err := store.OpenAzure(d.spec(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (d *directory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/tenant/v2.0/.well-known/openid-configuration":
		fmt.Fprintf(w, `{"issuer":"%[1]s/tenant/v2.0","token_endpoint":"%[1]s/tenant/oauth2/v2.0/token",`+
			`"authorization_endpoint":"%[1]s/tenant/oauth2/v2.0/authorize"}`, d.URL)
	case d.refused != "":
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, d.refused)
	default:
		asked := r.FormValue("client_id") + " " + r.FormValue("client_assertion") + " " + r.FormValue("scope")
		fmt.Fprintf(w, `{"token_type":"Bearer","expires_in":0,"access_token":%q}`, d.next(asked))
	}
}

// A token is asked for as Azure wants it, and why there is none is said.
func TestIdentityOfAzure(t *testing.T) {
	d := newDirectory(t)
	if err := store.Check(t.Context(), d.open(t), "me", noon); err != nil {
		t.Error(err)
	}
	asked := "backups of the pod https://storage.azure.com/.default"
	if got := d.all(); len(got) < 2 || !strings.HasPrefix(got[0], asked) {
		t.Errorf("asked %q", got)
	}
	d.blobs.fault = func(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool) {
		refuseBlob(w, http.StatusForbidden, "AuthorizationPermissionMismatch")
		return w, true
	}
	err := put(d.open(t), "key", nil)
	if reason(err) != v1alpha1.ReasonAccessDenied || !strings.Contains(err.Error(), "Storage Blob Data Contributor") {
		t.Errorf("no role: %v", err)
	}
	d.refused = `{"error":"invalid_client","error_description":"AADSTS700213: No matching federated identity record ` +
		`found. Trace ID: 1 Correlation ID: 2"}`
	err = put(d.open(t), "key", nil)
	if reason(err) != v1alpha1.ReasonAccessDenied || !strings.HasSuffix(err.Error(), "401 Unauthorized: "+
		"AADSTS700213: No matching federated identity record found.: give the identity a federated credential for "+
		"the service account") {
		t.Errorf("not trusted: %v", err)
	}
	opened := d.open(t)
	d.Close()
	if err := put(opened, "key", nil); reason(err) != v1alpha1.ReasonStoreUnreachable {
		t.Errorf("nobody there: %v", err)
	}
	t.Setenv("AZURE_CLIENT_ID", "") // as for a service account without the annotation
	_, err = store.OpenAzure(d.spec(), nil)
	if reason(err) != v1alpha1.ReasonIdentityMissing || !strings.Contains(err.Error(), "AZURE_CLIENT_ID is not set") {
		t.Errorf("no identity: %v", err)
	}
}
