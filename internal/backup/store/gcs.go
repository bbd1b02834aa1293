package store

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"helenus.io/helenus/api/v1alpha1"
)

// GCS is a store in a bucket of Google Cloud Storage.
type GCS struct {
	client *gcsClient
	bucket string
	prefix string
	// byIdentity says that tokens are those of the pod's identity, and not got by a key.
	byIdentity bool
}

// gcsObject is what the service says of an object, as far as it is asked. It writes numbers of 64
// bits as text.
type gcsObject struct {
	Name        string    `json:"name"`
	Size        int64     `json:"size,string"`
	TimeCreated time.Time `json:"timeCreated"`
	CRC32C      string    `json:"crc32c"`
	Generation  string    `json:"generation"`
}

// OpenGCS opens a store in a bucket.
func OpenGCS(spec v1alpha1.GCSStore, secret map[string][]byte) (*GCS, error) {
	invalid := func(reason string, err error) error {
		return &Problem{Reason: reason, Request: "open bucket " + spec.Bucket, Err: err}
	}
	endpoint := spec.Endpoint
	if endpoint == "" {
		endpoint = "https://storage.googleapis.com"
	}
	address, transport, reason, err := wayTo(endpoint, spec.SecretName, secret)
	if err != nil {
		return nil, invalid(reason, err)
	}
	var tokens oauth2.TokenSource
	if spec.ServiceAccount {
		tokens = newGCSIdentity(transport)
	} else if tokens, err = tokensByKey(secret[v1alpha1.KeyServiceAccountKey], address, transport); err != nil {
		return nil, invalid(v1alpha1.ReasonSecretInvalid, fmt.Errorf("the Secret %s must have %s, a key of a service "+
			"account as Google makes it, in JSON: %w", spec.SecretName, v1alpha1.KeyServiceAccountKey, err))
	}
	s := &GCS{client: newGCSClient(address, transport, tokens), bucket: spec.Bucket, byIdentity: spec.ServiceAccount}
	if spec.Prefix != "" {
		s.prefix = spec.Prefix + "/"
	}
	return s, nil
}

// path of the objects of the bucket.
func (s *GCS) path() string { return "/storage/v1/b/" + s.bucket + "/o" }

func (s *GCS) object(key string) gcsRequest {
	return gcsRequest{method: http.MethodGet, path: s.path() + "/" + url.PathEscape(s.prefix+key)}
}

// upload begins to write an object where there is none.
func (s *GCS) upload(kind string, query url.Values) gcsRequest {
	query.Set("uploadType", kind)
	query.Set("ifGenerationMatch", "0")
	return gcsRequest{method: http.MethodPost, path: "/upload" + s.path() + "?" + query.Encode(), header: http.Header{}}
}

// Put writes small objects by one request and large ones in parts, with their CRC-32C, which the
// service verifies. An ErrExists may mean an object of this very call: its answer was lost, and it
// was sent again.
func (s *GCS) Put(ctx context.Context, key string, content io.Reader, size int64) error {
	return s.write(ctx, nil, key, content, size)
}

func (s *GCS) write(ctx context.Context, j Journal, key string, content io.Reader, size int64) error {
	buffer := make([]byte, min(partSize, size))
	if size > partSize {
		return s.putParts(ctx, j, key, content, size, buffer)
	}
	if err := fill(content, buffer, true); err != nil {
		return fmt.Errorf("write object %s: %w", key, err)
	}
	q := s.upload("multipart", url.Values{})
	q.related(map[string]string{"name": s.prefix + key, "crc32c": encoded(crc32.Checksum(buffer, castagnoli))}, buffer)
	return s.failed("write", key, s.client.ask(ctx, q, nil))
}

func (s *GCS) journaled(key string) string { return journaled(s.client.base, s.bucket, s.prefix+key) }

func (s *GCS) abort(ctx context.Context, session, _ string) {
	ctx, cancel := limited(context.WithoutCancel(ctx), 0)
	defer cancel()
	_ = s.client.once(ctx, gcsRequest{method: http.MethodDelete, path: session}, nil)
}

// begin an upload in parts, or resume the one that the journal has, of which the service has so
// many bytes. The service forgets one that was not completed after a week.
func (s *GCS) begin(ctx context.Context, j Journal, key string, size int64) (session string, has int64, err error) {
	if j != nil {
		if lines := j.Lines(s.journaled(key)); len(lines) > 0 {
			session, _, _ = strings.Cut(lines[0], " ")
			if has, err = s.client.has(ctx, session, size); err == nil || again(err) {
				return session, has, err
			}
			j.Clear(s.journaled(key)) // it is forgotten, or of another size
		}
	}
	session, err = s.client.begin(ctx, s.upload("resumable", url.Values{"name": {s.prefix + key}}), size)
	if err == nil && j != nil {
		j.Add(s.journaled(key), session+" "+key)
	}
	return session, 0, err
}

// putParts writes an object in parts. Those that the service has are read, but not sent: the
// CRC-32C of all says in the end whether they are right.
func (s *GCS) putParts(ctx context.Context, j Journal, key string, content io.Reader, size int64, buffer []byte) error {
	resumes := false
	if j != nil {
		defer func() {
			if !resumes {
				j.Clear(s.journaled(key))
			}
		}()
	}
	session, has, err := s.begin(ctx, j, key, size)
	if err != nil {
		resumes = again(err)
		return s.failed("begin to write", key, err)
	}
	sum, written := crc32.New(castagnoli), gcsObject{}
	for at := int64(0); at < size; at += int64(len(buffer)) {
		buffer = buffer[:min(size-at, int64(len(buffer)))]
		end := at + int64(len(buffer))
		if err := fill(content, buffer, end == size); err != nil {
			resumes = ctx.Err() != nil
			return fmt.Errorf("write object %s: %w", key, err)
		}
		_, _ = sum.Write(buffer)
		if end <= has && end < size {
			continue
		}
		written, err = s.client.putPart(ctx, session, buffer, at, max(at, has), size, encoded(sum.Sum32()))
		resumes = again(err) || ctx.Err() != nil
		if errors.Is(found(err), ErrNotFound) || refusal(err).status == http.StatusGone {
			if there, _ := s.Size(ctx, key); there == size { // completed, but the answer was lost
				return ErrExists
			}
			err = errors.New("the service has forgotten the upload: " + err.Error()) // it is about no bucket
		}
		if err != nil {
			return s.failed(fmt.Sprintf("write bytes from %d on of", at), key, err)
		}
	}
	if written.CRC32C == encoded(sum.Sum32()) {
		return nil
	}
	q := s.object(key)
	q.method, q.path = http.MethodDelete, q.path+"?ifGenerationMatch="+url.QueryEscape(written.Generation)
	if err := s.client.ask(ctx, q, nil); err != nil {
		return s.failed("remove what was damaged of", key, err)
	}
	return s.failed("write", key, errors.New("the service had other content than was sent"))
}

// Get reads an object to its end, or fails: what breaks off is resumed.
func (s *GCS) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	from := func(ctx context.Context, at int64) (io.ReadCloser, int64, error) {
		q := s.object(key)
		q.path += "?alt=media"
		if at > 0 {
			q.header = http.Header{"Range": {fmt.Sprintf("bytes=%d-", at)}}
		}
		return s.client.read(ctx, q)
	}
	r := &reader{ctx: ctx, from: from, failed: func(err error) error { return s.failed("read", key, found(err)) }}
	return r.read()
}

// Size asks for that of the object.
func (s *GCS) Size(ctx context.Context, key string) (int64, error) {
	var is gcsObject
	q := s.object(key)
	q.path += "?fields=size"
	err := s.client.ask(ctx, q, &is)
	return is.Size, s.failed("look for", key, found(err))
}

// List asks for a thousand objects at a time.
func (s *GCS) List(ctx context.Context, prefix string, each func(Object) error) error {
	query := url.Values{"prefix": {s.prefix + prefix}, "fields": {"items(name,size,timeCreated),nextPageToken"}}
	for last := ""; ; {
		var page struct {
			Items         []gcsObject `json:"items"`
			NextPageToken string      `json:"nextPageToken"`
		}
		q := gcsRequest{method: http.MethodGet, path: s.path() + "?" + query.Encode()}
		if err := s.client.ask(ctx, q, &page); err != nil {
			return s.failed("list", prefix, err)
		}
		for _, item := range page.Items {
			key := strings.TrimPrefix(item.Name, s.prefix)
			if last != "" && key <= last {
				return fmt.Errorf("list objects %s of bucket %s: %s comes after %s, so the list is not to be relied on",
					prefix, s.bucket, key, last)
			}
			last = key
			if err := each(Object{Key: key, Size: item.Size, Written: item.TimeCreated}); err != nil {
				return err
			}
		}
		if page.NextPageToken == "" {
			return nil
		}
		query.Set("pageToken", page.NextPageToken)
	}
}

// Delete removes the object, and of a bucket with versions the latest one.
func (s *GCS) Delete(ctx context.Context, key string) error {
	q := s.object(key)
	q.method = http.MethodDelete
	err := found(s.client.ask(ctx, q, nil))
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return s.failed("delete", key, err)
}

// Public says that anybody can read an object.
func (s *GCS) Public(ctx context.Context, key string) (bool, error) {
	q := s.object(key)
	q.anonymous = true
	err := s.client.ask(ctx, q, nil)
	switch refusal(err).status {
	case http.StatusForbidden, http.StatusUnauthorized:
		return false, nil
	}
	return err == nil, s.failed("read without credentials", key, err)
}

// found says of an answer that the object is not there. For a bucket the service uses the same
// status.
func found(err error) error {
	is := refusal(err)
	if is.status == http.StatusNotFound && !strings.Contains(is.message, "bucket does not exist") {
		return ErrNotFound
	}
	return err
}

// failed is the error of a request about an object, or about those of a prefix.
func (s *GCS) failed(verb, key string, err error) error {
	what := fmt.Sprintf("%s object %s of bucket %s", verb, s.prefix+key, s.bucket)
	var unknown *Problem
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unknown): // who asks
		return &Problem{Request: what, Err: err, Reason: unknown.Reason}
	case refusal(err).status == http.StatusPreconditionFailed:
		return ErrExists
	case errors.Is(err, ErrNotFound), errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w", what, err)
	}
	p := &Problem{Request: what, Err: err}
	p.Reason, p.Help = s.explain(err)
	return p
}

// explain gives the reason of a failure, and what would help.
func (s *GCS) explain(err error) (reason, help string) {
	is := refusal(err)
	if is.reason == "retentionPolicyNotMet" {
		return v1alpha1.ReasonLockUnsupported, "remove the retention policy of the bucket: backups delete objects soon"
	}
	switch is.status {
	case 0:
		return v1alpha1.ReasonStoreUnreachable, unreachable(err)
	case http.StatusNotFound:
		return v1alpha1.ReasonBucketMissing, "create the bucket, or correct its name or the endpoint"
	case http.StatusForbidden, http.StatusUnauthorized:
		who := "service account that the key in the Secret is of"
		if s.byIdentity {
			who = "identity of the service account"
		}
		return v1alpha1.ReasonAccessDenied, "give the " + who + " the role Storage Object User on the bucket"
	case http.StatusNotImplemented, http.StatusMethodNotAllowed:
		return v1alpha1.ReasonUnsupportedService, "the service does not know a request that backups need"
	}
	return v1alpha1.ReasonStoreUnreachable, ""
}
