package store_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/store"
)

func identity(t *testing.T) *age.X25519Identity {
	t.Helper()
	i, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// encrypt a store for the first of some identities, which are as age-keygen writes them.
func encrypt(t *testing.T, s store.Store, identities ...*age.X25519Identity) store.Store {
	t.Helper()
	text := ""
	for _, i := range identities {
		text += "# public key: " + i.Recipient().String() + "\n" + i.String() + "\n\n"
	}
	e, err := store.Encrypt(s, "backup-key", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// A content is stored under a name that another identity would not give it, and is no plain text.
// What was encrypted for an earlier identity is read as long as that is there.
func TestEncrypt(t *testing.T) {
	d, first, second := store.Directory(t.TempDir()), identity(t), identity(t)
	old, both, other := encrypt(t, d, first), encrypt(t, d, second, first), encrypt(t, d, second)
	row := bytes.Repeat([]byte("a row of a customer. "), 5000)
	for key, s := range map[string]store.Store{"old": old, "new": both} {
		if err := put(s, key, row); err != nil {
			t.Fatal(err)
		}
		raw := get(t, d, key)
		if bytes.Contains(raw, []byte("customer")) {
			t.Errorf("%s is stored as it is", key)
		}
		if size, err := d.Size(t.Context(), key); err != nil || size != int64(len(raw)) || len(raw) <= len(row) {
			t.Errorf("%s has %d bytes, %v", key, size, err)
		}
		if got := get(t, both, key); !bytes.Equal(got, row) {
			t.Errorf("%s was read otherwise than it was written", key)
		}
	}
	for key, s := range map[string]store.Store{"old": other, "new": old} {
		_, err := s.Get(t.Context(), key)
		if !errors.Is(err, store.ErrNoIdentity) || reason(err) != v1alpha1.ReasonEncryptionMismatch ||
			!strings.Contains(err.Error(), "identities in Secret backup-key") {
			t.Errorf("%s without its identity: %v", key, err)
		}
	}
	sum := sha256.Sum256(row)
	names := [][32]byte{sum, store.BlobName(old, sum), store.BlobName(both, sum)}
	if store.BlobName(d, sum) != sum || names[0] == names[1] || names[1] == names[2] || names[0] == names[2] ||
		store.BlobName(other, sum) != names[2] {
		t.Errorf("named %x", names)
	}
}

// Whichever bit of an object is another one, it is not read, and so is what is cut off or was never
// encrypted.
func TestEncryptFindsDamage(t *testing.T) {
	dir := t.TempDir()
	s := encrypt(t, store.Directory(dir), identity(t))
	if err := put(s, "object", []byte("row")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "object")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := [][]byte{nil, raw[:20], raw[:len(raw)-1], []byte("row"), append(slices.Clone(raw), 0)}
	for i := range raw {
		flipped := slices.Clone(raw)
		flipped[i] ^= 1
		damaged = append(damaged, flipped)
	}
	for i, content := range damaged {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := s.Get(t.Context(), "object")
		if err == nil {
			_, err = r.Read(make([]byte, 10))
		}
		if !errors.Is(err, store.ErrDamaged) && !errors.Is(err, store.ErrNoIdentity) {
			t.Errorf("damage %d: %v", i, err)
		}
		if size, err := s.Size(t.Context(), "object"); err != nil || (size == 3) != (len(content) == len(raw)) {
			t.Errorf("damage %d: size %d, %v", i, size, err)
		}
	}
}

// A check refuses a store with objects that cannot be read.
func TestCheckOfEncryption(t *testing.T) {
	d := store.Directory(t.TempDir())
	first, second, third := identity(t), identity(t), identity(t)
	check := func(of, s store.Store, says string) {
		t.Helper()
		err := store.Check(t.Context(), s, "me", noon)
		if (err == nil) != (says == "") || err != nil && (reason(err) != v1alpha1.ReasonEncryptionMismatch ||
			!strings.Contains(err.Error(), says)) {
			t.Errorf("%v, want %q", err, says)
		}
		if left := list(t, of, "checks/"); len(left) > 0 {
			t.Errorf("left %v", left)
		}
	}
	check(d, encrypt(t, d, first), "")
	check(d, encrypt(t, d, second), first.Recipient().String()+", and identities of Secret backup-key does not have")
	check(d, d, "create a store with encryption.mode Client")
	check(d, encrypt(t, d, second, first), "")
	check(d, encrypt(t, d, first, third), "add it as a further line")
	check(d, encrypt(t, d, third, second, first), "")
	if keys := list(t, d, "encryption/"); len(keys) != 3 {
		t.Errorf("there is %v", keys)
	}
	unencrypted := store.Directory(t.TempDir())
	check(unencrypted, unencrypted, "")
	check(unencrypted, encrypt(t, unencrypted, first), "create a store with encryption.mode None")
}

// The identities come from their own Secret, and the access key from that of the bucket.
func TestSecretsOfAStore(t *testing.T) {
	i := identity(t)
	spec := v1alpha1.BackupStoreSpec{S3: &v1alpha1.S3Store{Bucket: bucket, Region: "eu-1", SecretName: "key"},
		Encryption: &v1alpha1.StoreEncryption{Mode: v1alpha1.StoreEncryptionClient, SecretName: "backup-key"}}
	all := map[string]map[string][]byte{"key": secret(), "backup-key": {v1alpha1.KeyIdentities: []byte(i.String()),
		v1alpha1.KeyAccessKeyID: nil}}
	open := func() (store.Store, error) {
		read, err := store.Secrets(&spec, func(name string) (map[string][]byte, error) { return all[name], nil })
		if err != nil {
			t.Fatal(err)
		}
		return store.Open(spec, read)
	}
	s, err := open()
	if err != nil {
		t.Fatal(err)
	}
	if sum := [32]byte{1}; store.BlobName(s, sum) != store.BlobName(encrypt(t, s, i), sum) {
		t.Error("it is not encrypted for the identity")
	}
	pq, err := age.GenerateHybridIdentity()
	if err != nil {
		t.Fatal(err)
	}
	for identities, says := range map[string]string{"": "it is empty or not there", "\n": "it is empty or not there",
		"AGE-SECRET-KEY-1ABC": "a line of it is no identity", i.Recipient().String(): "a line of it is no identity",
		pq.String(): "none of X25519"} {
		all["backup-key"] = map[string][]byte{v1alpha1.KeyIdentities: []byte(identities)}
		all["key"][v1alpha1.KeyIdentities] = []byte(i.String()) // of no account
		_, err := open()
		if reason(err) != v1alpha1.ReasonSecretInvalid || !strings.Contains(err.Error(), says) ||
			!strings.Contains(err.Error(), "identities of Secret backup-key") || strings.Contains(err.Error(), "1ABC") {
			t.Errorf("%q: %v", identities, err)
		}
	}
	spec.Encryption.Mode = v1alpha1.StoreEncryptionNone
	if s, err = open(); err != nil || store.BlobName(s, [32]byte{1}) != [32]byte{1} {
		t.Errorf("with mode None: %v", err)
	}
}
