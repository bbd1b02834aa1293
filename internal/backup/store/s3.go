package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"helenus.io/helenus/api/v1alpha1"
)

// S3 is a store in a bucket.
type S3 struct {
	core   minio.Core
	public *minio.Client
	bucket string
	prefix string
	lock   *lock
	// byRole says that requests are signed as a role, and not by an access key.
	byRole bool
}

// OpenS3 opens a store in a bucket.
func OpenS3(spec v1alpha1.S3Store, secret map[string][]byte) (*S3, error) {
	value := func(key string) string { return strings.TrimSpace(string(secret[key])) }
	id, key := value(v1alpha1.KeyAccessKeyID), value(v1alpha1.KeySecretAccessKey)
	invalid := func(reason string, err error) error {
		return &Problem{Reason: reason, Request: "open bucket " + spec.Bucket, Err: err}
	}
	if !spec.ServiceAccount && (id == "" || key == "") {
		return nil, invalid(v1alpha1.ReasonSecretInvalid, fmt.Errorf("the Secret %s must have %s and %s",
			spec.SecretName, v1alpha1.KeyAccessKeyID, v1alpha1.KeySecretAccessKey))
	}
	endpoint := spec.Endpoint
	if endpoint == "" {
		endpoint = "https://s3.amazonaws.com"
	}
	address, transport, reason, err := wayTo(endpoint, spec.SecretName, secret)
	if err != nil {
		return nil, invalid(reason, err)
	}
	client := func(c *credentials.Credentials) (*minio.Client, error) {
		return minio.New(address.Host, &minio.Options{Creds: c, Secure: address.Scheme == "https",
			Region: spec.Region, Transport: sender{transport}, MaxRetries: attempts})
	}
	who := credentials.NewStaticV4(id, key, "")
	if spec.ServiceAccount {
		who = newAWSIdentity(spec.Region, transport)
	}
	signed, err := client(who)
	if err != nil {
		return nil, invalid(v1alpha1.ReasonEndpointInvalid, err)
	}
	public, err := client(credentials.NewStatic("", "", "", credentials.SignatureAnonymous))
	if err != nil {
		return nil, invalid(v1alpha1.ReasonEndpointInvalid, err)
	}
	s := &S3{core: minio.Core{Client: signed}, public: public, bucket: spec.Bucket,
		byRole: spec.ServiceAccount}
	if spec.Prefix != "" {
		s.prefix = spec.Prefix + "/"
	}
	return s, nil
}

// Put writes small objects by one request and large ones in parts, each with its SHA-256, which the
// service verifies. An ErrExists may mean an object of this very call: its answer was lost, and it
// was sent again.
func (s *S3) Put(ctx context.Context, key string, content io.Reader, size int64) error {
	return s.write(ctx, nil, key, content, size)
}

func (s *S3) write(ctx context.Context, j Journal, key string, content io.Reader, size int64) error {
	part := max(partSize, (size+mostParts-1)/mostParts)
	buffer := make([]byte, min(part, size))
	if size <= part {
		if err := fill(content, buffer, true); err != nil {
			return fmt.Errorf("write object %s: %w", key, err)
		}
		return s.put(ctx, key, buffer)
	}
	return s.putParts(ctx, j, key, content, size, buffer)
}

// put writes an object by one request. Of several at once, the service may turn all away.
func (s *S3) put(ctx context.Context, key string, content []byte) error {
	ctx, cancel := limited(ctx, len(content))
	defer cancel()
	var err error
	for range attempts {
		_, err = s.core.PutObject(ctx, s.bucket, s.prefix+key, bytes.NewReader(content), int64(len(content)),
			s.md5Of(key, content), digest(content), s.retaining(key, unlessThere()))
		if code(err) != http.StatusConflict {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	return s.failed("write", key, err)
}

// Get reads an object to its end, or fails: what breaks off is resumed.
func (s *S3) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	from := func(ctx context.Context, at int64) (io.ReadCloser, int64, error) {
		var options minio.GetObjectOptions
		if at > 0 {
			options.Set("Range", fmt.Sprintf("bytes=%d-", at))
		}
		body, info, _, err := s.core.GetObject(ctx, s.bucket, s.prefix+key, options)
		return body, info.Size, err //nolint:wrapcheck // failed wraps it
	}
	r := &reader{ctx: ctx, from: from, failed: func(err error) error { return s.failed("read", key, err) }}
	return r.read()
}

// Size asks for that of the object.
func (s *S3) Size(ctx context.Context, key string) (int64, error) {
	info, err := s.stat(ctx, key)
	return info.Size, err
}

func (s *S3) stat(ctx context.Context, key string) (minio.ObjectInfo, error) {
	ctx, cancel := limited(ctx, 0)
	defer cancel()
	info, err := s.core.StatObject(ctx, s.bucket, s.prefix+key, minio.StatObjectOptions{})
	return info, s.failed("look for", key, err)
}

// List asks for a thousand objects at a time.
func (s *S3) List(ctx context.Context, prefix string, each func(Object) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	last := ""
	for info := range s.core.ListObjectsIter(ctx, s.bucket, minio.ListObjectsOptions{Prefix: s.prefix + prefix,
		Recursive: true}) {
		if info.Err != nil {
			return s.failed("list", prefix, info.Err)
		}
		key := strings.TrimPrefix(info.Key, s.prefix)
		if last != "" && key <= last {
			return fmt.Errorf("list objects %s of bucket %s: %s comes after %s, so the list is not to be relied on",
				prefix, s.bucket, key, last)
		}
		last = key
		if err := each(Object{Key: key, Size: info.Size, Written: info.LastModified}); err != nil {
			return err
		}
	}
	return s.failed("list", prefix, ctx.Err())
}

// Delete removes the object, and of a bucket with versions the latest one. The error is ErrLocked
// if it is locked.
func (s *S3) Delete(ctx context.Context, key string) error {
	if s.lock != nil {
		return s.deleteVersion(ctx, key)
	}
	return s.remove(ctx, key, minio.RemoveObjectOptions{})
}

func (s *S3) remove(ctx context.Context, key string, options minio.RemoveObjectOptions) error {
	ctx, cancel := limited(ctx, 0)
	defer cancel()
	err := s.failed("delete", key, s.core.RemoveObject(ctx, s.bucket, s.prefix+key, options))
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// Public says that anybody can read an object.
func (s *S3) Public(ctx context.Context, key string) (bool, error) {
	ctx, cancel := limited(ctx, 0)
	defer cancel()
	object, _, _, err := minio.Core{Client: s.public}.GetObject(ctx, s.bucket, s.prefix+key, minio.GetObjectOptions{})
	switch {
	case err == nil:
		return true, object.Close()
	case code(err) == http.StatusForbidden || code(err) == http.StatusUnauthorized:
		return false, nil
	}
	return false, s.failed("read without credentials", key, err)
}

// unlessThere has a request fail if there is an object. Its own SHA-256 is in each request with
// content, and no further one of each piece.
func unlessThere() minio.PutObjectOptions {
	options := minio.PutObjectOptions{DisableContentSha256: true}
	options.SetMatchETagExcept("*")
	return options
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// code of the answer, 0 if there was none.
func code(err error) int {
	if err == nil {
		return 0
	}
	return minio.ToErrorResponse(err).StatusCode
}
