package store_test

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/store"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A check leaves nothing behind, and removes what earlier ones have left.
func TestCheck(t *testing.T) {
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			for _, at := range []time.Time{noon.Add(-2 * time.Hour), noon.Add(-time.Minute)} {
				if err := put(s, fmt.Sprintf("checks/me/%019d", at.UnixNano()), nil); err != nil {
					t.Fatal(err)
				}
			}
			if err := put(s, fmt.Sprintf("checks/you/%019d", 1), nil); err != nil {
				t.Fatal(err)
			}
			if err := store.Check(t.Context(), s, "me", noon); err != nil {
				t.Fatal(err)
			}
			got := list(t, s, "checks/")
			if all := list(t, s, ""); len(all) != 3 || len(got) != 2 || !strings.HasSuffix(got[0].Key, fmt.Sprint(noon.Add(-time.Minute).UnixNano())) ||
				!strings.HasPrefix(got[1].Key, "checks/you/") {
				t.Errorf("there is %v", got)
			}
		})
	}
}

// What a check finds about services on which backups cannot rely.
func TestCheckFinds(t *testing.T) {
	method := func(m, query string) func(*http.Request) bool {
		return func(r *http.Request) bool {
			return r.Method == m && r.URL.Query().Has("list-type") == (query == "list-type")
		}
	}
	answers := func(status int, code string) func(http.ResponseWriter, *http.Request) (http.ResponseWriter, bool) {
		return func(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool) {
			answer(w, status, code)
			return w, true
		}
	}
	for name, c := range map[string]struct {
		match  func(*http.Request) bool
		do     func(http.ResponseWriter, *http.Request) (http.ResponseWriter, bool)
		reason string
		says   string
	}{
		"no condition": {anything, func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
			r.Header.Del("If-None-Match")
			return w, false
		}, v1alpha1.ReasonUnsupportedService, "overwritten"},
		"public": {func(r *http.Request) bool { return r.Header.Get("Authorization") == "" },
			func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
				r.Header.Set("Authorization", "whoever")
				return w, false
			}, v1alpha1.ReasonBucketPublic, "without credentials"},
		"a list that lags": {method(http.MethodGet, "list-type"),
			func(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool) {
				fmt.Fprint(w, "<ListBucketResult><Name>backups</Name></ListBucketResult>")
				return w, true
			}, v1alpha1.ReasonUnsupportedService, "not listed"},
		"a read that lags": {func(r *http.Request) bool { return r.Method == http.MethodGet },
			answers(http.StatusNotFound, "NoSuchKey"), v1alpha1.ReasonUnsupportedService, "cannot be read"},
		"no right to list": {method(http.MethodGet, "list-type"), answers(403, "AccessDenied"),
			v1alpha1.ReasonAccessDenied, "ListBucket"},
		"no right to delete": {method(http.MethodDelete, ""), answers(403, "AccessDenied"),
			v1alpha1.ReasonAccessDenied, "DeleteObject"},
		"another service": {anything, func(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool) {
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprint(w, "something internal")
			return w, true
		}, v1alpha1.ReasonStoreUnreachable, `answers "418 I'm a teapot"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := serve(t, false)
			service.inject(100, c.match, c.do)
			err := store.Check(t.Context(), service.open(t), "me", noon)
			if reason(err) != c.reason || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", reason(err), err)
			}
			if err != nil && strings.Contains(err.Error(), "internal") {
				t.Errorf("tells what others say: %v", err)
			}
		})
	}
}

// A Secret or an endpoint that cannot be used.
func TestOpenRefuses(t *testing.T) {
	spec := v1alpha1.S3Store{Bucket: bucket, SecretName: "key"}
	type secretData = map[string][]byte
	for name, c := range map[string]struct {
		reason string
		change func(*v1alpha1.S3Store, secretData)
	}{
		"no key": {v1alpha1.ReasonSecretInvalid,
			func(_ *v1alpha1.S3Store, s secretData) { delete(s, v1alpha1.KeySecretAccessKey) }},
		"an empty key": {v1alpha1.ReasonSecretInvalid,
			func(_ *v1alpha1.S3Store, s secretData) { s[v1alpha1.KeyAccessKeyID] = []byte(" \n") }},
		"no certificate": {v1alpha1.ReasonSecretInvalid,
			func(_ *v1alpha1.S3Store, s secretData) { s[v1alpha1.KeyStoreAuthority] = []byte("x") }},
		"no scheme": {v1alpha1.ReasonEndpointInvalid,
			func(s *v1alpha1.S3Store, _ secretData) { s.Endpoint = "minio.storage" }},
		"no port": {v1alpha1.ReasonEndpointInvalid,
			func(s *v1alpha1.S3Store, _ secretData) { s.Endpoint = "http://minio:port" }},
	} {
		spec, secret := spec, secret()
		c.change(&spec, secret)
		if _, err := store.Open(v1alpha1.BackupStoreSpec{S3: &spec}, secret); reason(err) != c.reason {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An authority in the Secret is trusted, and a service is asked for a region that is not named.
func TestAuthorityOfTheSecret(t *testing.T) {
	service := serve(t, true)
	service.spec.Region = ""
	with := secret()
	with[v1alpha1.KeyStoreAuthority] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: service.Certificate().Raw})
	s, err := store.OpenS3(service.spec, with)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Check(t.Context(), s, "me", noon); err != nil {
		t.Error(err)
	}
}
