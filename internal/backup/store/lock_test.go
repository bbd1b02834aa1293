package store_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/store"
)

// locks is the object lock of the service, which has each object in one version. It says that it
// has answered.
func (s *service) locks(w http.ResponseWriter, r *http.Request, key string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	query := r.URL.Query()
	asked, err := time.Parse(time.RFC3339, r.Header.Get("X-Amz-Object-Lock-Retain-Until-Date"))
	switch {
	case query.Has("object-lock") && s.locked == nil:
		answer(w, http.StatusNotFound, "ObjectLockConfigurationNotFoundError")
	case query.Has("object-lock"):
		fmt.Fprintf(w, "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled>%s"+
			"</ObjectLockConfiguration>", s.standing)
	case query.Has("retention"):
		var wanted struct{ RetainUntilDate time.Time }
		if err := xml.NewDecoder(r.Body).Decode(&wanted); err != nil || s.locked == nil ||
			wanted.RetainUntilDate.Before(s.locked[key]) {
			answer(w, http.StatusForbidden, "AccessDenied")
			return true
		}
		s.locked[key] = wanted.RetainUntilDate
	case err == nil && (s.locked == nil || r.Method == http.MethodPut && r.Header.Get("Content-Md5") == ""):
		answer(w, http.StatusBadRequest, "InvalidRequest")
	case r.Method == http.MethodDelete && query.Has("versionId") && s.locked[key].After(time.Now()):
		answer(w, http.StatusForbidden, "AccessDenied")
	default:
		if err == nil {
			s.locked[key] = asked
			r.Header.Del("X-Amz-Object-Lock-Retain-Until-Date") // it would be told for ever
		}
		if until := s.locked[key]; r.Method == http.MethodHead && !until.IsZero() {
			w.Header().Set("X-Amz-Object-Lock-Retain-Until-Date", until.UTC().Format(time.RFC3339))
		}
		query.Del("versionId")
		r.URL.RawQuery = query.Encode()
		return false
	}
	return true
}

// until is for how many days an object is locked; 0 if it is not.
func (s *service) until(key string) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	left := time.Until(s.locked[s.spec.Prefix+"/"+key])
	return int((max(left, 0) + 12*time.Hour) / (24 * time.Hour))
}

func (s *service) unlock(key string, left time.Duration) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.locked[s.spec.Prefix+"/"+key] = time.Now().Add(left)
}

// openLocked opens the store with a lock of 8 days, encrypted or not.
func (s *service) openLocked(t *testing.T, encrypted bool) store.Store {
	t.Helper()
	opened, err := store.Open(v1alpha1.BackupStoreSpec{S3: &s.spec,
		Lock: &v1alpha1.StoreLock{Mode: v1alpha1.StoreLockCompliance, Days: 8}}, secret())
	if err != nil {
		t.Fatal(err)
	}
	if encrypted {
		opened = encrypt(t, opened, identity(t))
	}
	return opened
}

// What backups consist of is locked when it is written, in one piece or in parts, and again before
// the lock of what is used again has ended. It is deleted when the lock has ended, and not before.
func TestLock(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		service := serve(t, false)
		service.locked = map[string]time.Time{}
		s := service.openLocked(t, encrypted)
		for key, days := range map[string]int{"c/blobs/aa/aa": 10, "c/nodes/h/b.manifest": 10, "c/backups/b.json": 10,
			"c/log/h/s/0": 10, "c/pins/aa/b": 0, "c/garbage/1.json": 0, "checks/me/1": 0} {
			size := map[bool]int{true: 9 << 20, false: 3}[key == "c/blobs/aa/aa"]
			if err := put(s, key, content(size)); err != nil {
				t.Fatal(err)
			}
			if got := service.until(key); got != days {
				t.Errorf("%s is locked for %d days, want %d", key, got, days)
			}
			if renewed, err := store.Renew(t.Context(), s, key); err != nil || renewed != int64(size) {
				t.Errorf("%s: renewed one of %d bytes, %v", key, renewed, err)
			}
			gone, err := store.Unlocked(t.Context(), s, key)
			if err != nil || gone != (days == 0) {
				t.Errorf("%s was deleted: %t, %v", key, gone, err)
			}
			if _, err := s.Size(t.Context(), key); errors.Is(err, store.ErrNotFound) != (days == 0) {
				t.Errorf("%s: %v", key, err)
			}
		}
		key := "c/backups/b.json"
		if err := s.Delete(t.Context(), key); !errors.Is(err, store.ErrLocked) ||
			!strings.Contains(err.Error(), "it is locked until "+time.Now().UTC().Format("2006-")) {
			t.Errorf("deleted what is locked: %v", err)
		}
		for left, days := range map[time.Duration]int{9 * 24 * time.Hour: 9, 7 * 24 * time.Hour: 10, -time.Hour: 10} {
			service.unlock(key, left)
			if _, err := store.Renew(t.Context(), s, key); err != nil || service.until(key) != days {
				t.Errorf("with %s left it is locked for %d days, want %d: %v", left, service.until(key), days, err)
			}
		}
		service.unlock(key, -time.Hour)
		if err := s.Delete(t.Context(), key); err != nil {
			t.Error(err)
		}
		if _, err := s.Size(t.Context(), key); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("it is there though its lock has ended: %v", err)
		}
		if !slices.ContainsFunc(service.requests(), func(r string) bool {
			return strings.HasPrefix(r, "DELETE /"+bucket+"/"+service.spec.Prefix+"/"+key+"?versionId=")
		}) {
			t.Error("it was hidden, and stays in the bucket")
		}
		blob := "c/blobs/aa/aa" // another content can be put in place of what is damaged
		if err := errors.Join(store.Hide(t.Context(), s, blob), put(s, blob, content(4))); err != nil {
			t.Error(err)
		}
		if got := get(t, s, blob); !bytes.Equal(got, content(4)) {
			t.Errorf("has %d bytes", len(got))
		}
	}
}

// A bucket that cannot lock, or that locks everything, is refused.
func TestCheckOfLock(t *testing.T) {
	for name, c := range map[string]struct {
		locked   map[string]time.Time
		standing string
		says     string
	}{
		"it locks":      {map[string]time.Time{}, "", ""},
		"an empty rule": {map[string]time.Time{}, "<Rule><DefaultRetention></DefaultRetention></Rule>", ""},
		"no lock":       {nil, "", "it has none: enable object lock"},
		"a rule of all": {map[string]time.Time{}, "<Rule><DefaultRetention><Mode>GOVERNANCE</Mode><Days>1</Days>" +
			"</DefaultRetention></Rule>", "remove the default retention"},
	} {
		for _, encrypted := range []bool{false, true} {
			service := serve(t, false)
			service.locked, service.standing = c.locked, c.standing
			err := store.Check(t.Context(), service.openLocked(t, encrypted), "me", noon)
			if (err == nil) != (c.says == "") || err != nil && (reason(err) != v1alpha1.ReasonLockUnsupported ||
				!strings.Contains(err.Error(), c.says)) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
