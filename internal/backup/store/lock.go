package store

import (
	"context"
	"crypto/md5" // services want it of what they are to lock; SHA-256 is what is relied on
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"helenus.io/helenus/api/v1alpha1"
)

// ErrLocked means that an object cannot be deleted yet; it was not touched.
var ErrLocked = errors.New("it is locked")

// lock is how the objects of backups are locked in a bucket. They are locked for a quarter longer
// than they must be, so that not each backup has to renew the locks of all files that it shares.
type lock struct {
	mode minio.RetentionMode
	time.Duration
}

func lockOf(spec *v1alpha1.StoreLock) *lock {
	if spec == nil || spec.Mode == v1alpha1.StoreLockNone {
		return nil
	}
	mode := minio.Governance
	if spec.Mode == v1alpha1.StoreLockCompliance {
		mode = minio.Compliance
	}
	return &lock{mode, time.Duration(spec.Days) * 24 * time.Hour}
}

func (l *lock) until() time.Time { return time.Now().Add(l.Duration * 5 / 4) }

// locked are the kinds of objects that are; all others are deleted soon.
var locked = []string{"blobs", "nodes", "backups", "log"}

func (s *S3) locks(key string) bool {
	parts := strings.SplitN(key, "/", 3)
	return s.lock != nil && len(parts) == 3 && slices.Contains(locked, parts[1])
}

// retaining has an object be locked from when it is written.
func (s *S3) retaining(key string, options minio.PutObjectOptions) minio.PutObjectOptions {
	if s.locks(key) {
		options.Mode, options.RetainUntilDate = s.lock.mode, s.lock.until()
	}
	return options
}

// md5Of is what a service requires of a request with content that is to be locked.
func (s *S3) md5Of(key string, content []byte) string {
	if !s.locks(key) {
		return ""
	}
	sum := md5.Sum(content)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// retained is until when an object is locked; zero if it is not.
func retained(info *minio.ObjectInfo) time.Time {
	until, err := time.Parse(time.RFC3339, info.Metadata.Get("X-Amz-Object-Lock-Retain-Until-Date"))
	if err != nil {
		return time.Time{}
	}
	return until
}

// Renew is the size of an object that is relied on from now on: where objects are locked, it is for
// as long as one that is written now.
func Renew(ctx context.Context, s Store, key string) (int64, error) {
	switch s := s.(type) {
	case *encrypted:
		size, err := Renew(ctx, s.Store, key)
		return plain(size), err
	case *S3:
		return s.renew(ctx, key)
	}
	return s.Size(ctx, key) //nolint:wrapcheck // it is ours
}

func (s *S3) renew(ctx context.Context, key string) (int64, error) {
	info, err := s.stat(ctx, key)
	if err != nil || !s.locks(key) || !retained(&info).Before(time.Now().Add(s.lock.Duration)) {
		return info.Size, err
	}
	ctx, cancel := limited(ctx, 0)
	defer cancel()
	until := s.lock.until()
	return info.Size, s.failed("lock", key, s.core.PutObjectRetention(ctx, s.bucket, s.prefix+key,
		minio.PutObjectRetentionOptions{Mode: &s.lock.mode, RetainUntilDate: &until, VersionID: info.VersionID}))
}

// Hide removes an object so that another one can be put in its place. One that is locked stays
// behind that, as an earlier version.
func Hide(ctx context.Context, s Store, key string) error {
	switch s := s.(type) {
	case *encrypted:
		return Hide(ctx, s.Store, key)
	case *S3:
		return s.remove(ctx, key, minio.RemoveObjectOptions{})
	}
	return s.Delete(ctx, key) //nolint:wrapcheck // it is ours
}

// Unlocked removes an object and says so, unless it is locked: that is no error.
func Unlocked(ctx context.Context, s Store, key string) (bool, error) {
	err := s.Delete(ctx, key)
	if errors.Is(err, ErrLocked) {
		return false, nil
	}
	return err == nil, err //nolint:wrapcheck // it is ours
}

// deleteVersion deletes the object itself, unless it is locked: without a version, a bucket that
// locks would keep it, and no more than hide it.
func (s *S3) deleteVersion(ctx context.Context, key string) error {
	info, err := s.stat(ctx, key)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	if until := retained(&info); until.After(time.Now()) {
		return fmt.Errorf("delete object %s of bucket %s: %w until %s", s.prefix+key, s.bucket, ErrLocked,
			until.UTC().Format(time.RFC3339))
	}
	return s.remove(ctx, key, minio.RemoveObjectOptions{VersionID: info.VersionID})
}

// lockable says that objects of the bucket can be locked, and are not without being asked to.
func (s *S3) lockable(ctx context.Context) error {
	if s.lock == nil {
		return nil
	}
	ctx, cancel := limited(ctx, 0)
	defer cancel()
	problem := &Problem{Reason: v1alpha1.ReasonLockUnsupported,
		Request: "look at the object lock of bucket " + s.bucket}
	enabled, standing, _, _, err := s.core.GetObjectLockConfig(ctx, s.bucket)
	switch {
	case minio.ToErrorResponse(err).Code == "ObjectLockConfigurationNotFoundError",
		err == nil && enabled != "Enabled":
		problem.Err = errors.New("it has none")
		problem.Help = "enable object lock, or use another bucket: most services take it only when a bucket is made"
	case err != nil:
		return s.failed("look at the object lock for", "", err)
	case standing != nil && standing.IsValid(): // versitygw answers with an empty rule where there is none
		problem.Err = errors.New("it has a default retention, which locks what is deleted soon, too")
		problem.Help = "remove the default retention: objects of backups are locked one by one"
	default:
		return nil
	}
	return problem
}
