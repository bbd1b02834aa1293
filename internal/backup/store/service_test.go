package store_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/store"
)

// s3 is a service beside the one of these tests, such as that of
//
//	go run github.com/versity/versitygw/cmd/versitygw@v1.8.0 --access someone --secret secret \
//	  --port 127.0.0.1:7070 posix --versioning-dir DIRECTORY DIRECTORY
var s3 = flag.String("s3", "", "`URL` of an S3 service with the keys someone and secret that is tried too")

// ofService is a store in a new bucket of the service, and what removes the version that an object
// has, whatever the store thinks of it.
func ofService(t *testing.T, locking bool, lock *v1alpha1.StoreLock) (_ store.Store, remove func(key string) error) {
	t.Helper()
	spec := v1alpha1.S3Store{Bucket: fmt.Sprintf("helenus-%d", time.Now().UnixNano()), Prefix: "some/prefix",
		Region: "us-east-1", Endpoint: *s3, SecretName: "key"}
	_, address, _ := strings.Cut(*s3, "://")
	service, err := minio.NewCore(address, &minio.Options{Creds: credentials.NewStaticV4("someone", "secret", "")})
	if err == nil {
		err = service.MakeBucket(t.Context(), spec.Bucket,
			minio.MakeBucketOptions{Region: spec.Region, ObjectLocking: locking})
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(v1alpha1.BackupStoreSpec{S3: &spec, Lock: lock}, secret())
	if err != nil {
		t.Fatal(err)
	}
	return s, func(key string) error {
		key = spec.Prefix + "/" + key
		info, err := service.StatObject(t.Context(), spec.Bucket, key, minio.StatObjectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return service.RemoveObject(t.Context(), spec.Bucket, key, minio.RemoveObjectOptions{VersionID: info.VersionID})
	}
}

// What TestLock says of the service of these tests, of another one, but that what is damaged can be
// replaced: versitygw takes a hidden object for one that is there, which S3 does not.
func TestLockOfAService(t *testing.T) {
	if *s3 == "" {
		t.Skip("no -s3")
	}
	for _, mode := range []v1alpha1.StoreLockMode{v1alpha1.StoreLockGovernance, v1alpha1.StoreLockCompliance} {
		for _, encrypted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, encrypted %t", mode, encrypted), func(t *testing.T) {
				s, remove := ofService(t, true, &v1alpha1.StoreLock{Mode: mode, Days: 8})
				if encrypted {
					s = encrypt(t, s, identity(t))
				}
				if err := store.Check(t.Context(), s, "me", time.Now()); err != nil {
					t.Fatal(err)
				}
				for key, locked := range map[string]bool{"c/blobs/aa/aa": true, "c/nodes/h/b.manifest": true,
					"c/backups/b.json": true, "c/log/h/s/0": true, "c/pins/aa/b": false, "c/garbage/1.json": false} {
					size := map[bool]int{true: 20 << 20, false: 3}[key == "c/blobs/aa/aa"]
					if err := put(s, key, content(size)); err != nil {
						t.Fatal(err)
					}
					if renewed, err := store.Renew(t.Context(), s, key); err != nil || renewed != int64(size) {
						t.Errorf("%s: renewed one of %d bytes, %v", key, renewed, err)
					}
					gone, err := store.Unlocked(t.Context(), s, key)
					if err != nil || gone == locked {
						t.Errorf("%s was deleted: %t, %v", key, gone, err)
					}
					if _, err := s.Size(t.Context(), key); errors.Is(err, store.ErrNotFound) == locked {
						t.Errorf("%s: %v", key, err)
					}
					if locked && remove(key) == nil {
						t.Errorf("%s could be removed", key)
					}
				}
			})
		}
	}
	s, _ := ofService(t, false, &v1alpha1.StoreLock{Mode: v1alpha1.StoreLockGovernance, Days: 8})
	if err := store.Check(t.Context(), s, "me", time.Now()); reason(err) != v1alpha1.ReasonLockUnsupported {
		t.Errorf("a bucket that does not lock: %v", err)
	}
}

// What TestResume says of the service of these tests, of another one: it is sent the two parts that
// it does not have.
func TestResumeOfAService(t *testing.T) {
	if *s3 == "" {
		t.Skip("no -s3")
	}
	for _, locking := range []bool{false, true} {
		var lock *v1alpha1.StoreLock
		if locking {
			lock = &v1alpha1.StoreLock{Mode: v1alpha1.StoreLockGovernance, Days: 8}
		}
		s, _ := ofService(t, locking, lock)
		j, want := lines{}, content(33<<20)
		ctx, cancel := context.WithCancel(t.Context())
		r := io.MultiReader(bytes.NewReader(want[:25<<20]), reads(func() error { cancel(); return nil }),
			bytes.NewReader(want[25<<20:]))
		if err := store.Resume(ctx, s, j, "c/blobs/aa/aa", r, 33<<20); !errors.Is(err, context.Canceled) {
			t.Fatalf("it was not interrupted: %v", err)
		}
		sent := 0
		ctx = store.Slowed(t.Context(), func(_ context.Context, bytes int) error { sent += bytes; return nil })
		if err := store.Resume(ctx, s, j, "c/blobs/aa/aa", bytes.NewReader(want), 33<<20); err != nil {
			t.Fatal(err)
		}
		if got := get(t, s, "c/blobs/aa/aa"); !bytes.Equal(got, want) || sent < 9<<20 || sent > 10<<20 {
			t.Errorf("locking %t: %d bytes were sent, and %d came back", locking, sent, len(got))
		}
	}
}
