package store

import (
	"bytes"
	"context"
	"crypto/md5" // all services know it, and CRC-64 not all; SHA-256 is what is relied on
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"helenus.io/helenus/api/v1alpha1"
)

// Azure is a store in a container of Azure Blob Storage.
type Azure struct {
	container *container.Client
	public    *container.Client
	name      string
	prefix    string
	// byIdentity says that requests have a token of an identity, and no signature by a key.
	byIdentity bool
}

// OpenAzure opens a store in a container.
func OpenAzure(spec v1alpha1.AzureStore, secret map[string][]byte) (*Azure, error) {
	invalid := func(reason string, err error) error {
		return &Problem{Reason: reason, Request: "open container " + spec.Container, Err: err}
	}
	endpoint := spec.Endpoint
	if endpoint == "" {
		endpoint = "https://" + spec.Account + ".blob.core.windows.net"
	}
	address, transport, reason, err := wayTo(endpoint, spec.SecretName, secret)
	if err != nil {
		return nil, invalid(reason, err)
	}
	options := &container.ClientOptions{ClientOptions: policy.ClientOptions{
		Transport: &http.Client{Transport: sender{transport}},
		Retry:     policy.RetryOptions{MaxRetries: attempts - 1, MaxRetryDelay: mostPause},
	}}
	whole := address.JoinPath(spec.Container).String()
	s := &Azure{name: spec.Container, byIdentity: spec.ServiceAccount}
	if spec.ServiceAccount {
		identity, missing := newAzureIdentity(transport, options.Retry)
		if missing != nil {
			return nil, invalid(v1alpha1.ReasonIdentityMissing, missing)
		}
		s.container, err = container.NewClient(whole, identity, options)
	} else {
		key := strings.TrimSpace(string(secret[v1alpha1.KeyAccountKey]))
		credential, wrong := container.NewSharedKeyCredential(spec.Account, key)
		if wrong != nil || key == "" {
			return nil, invalid(v1alpha1.ReasonSecretInvalid, fmt.Errorf("the Secret %s must have %s, an access key "+
				"of the account as Azure shows it, in base64", spec.SecretName, v1alpha1.KeyAccountKey))
		}
		s.container, err = container.NewClientWithSharedKeyCredential(whole, credential, options)
	}
	if err != nil {
		return nil, invalid(v1alpha1.ReasonEndpointInvalid, err)
	}
	if s.public, err = container.NewClientWithNoCredential(whole, options); err != nil {
		return nil, invalid(v1alpha1.ReasonEndpointInvalid, err)
	}
	if spec.Prefix != "" {
		s.prefix = spec.Prefix + "/"
	}
	return s, nil
}

func (s *Azure) blob(key string) *blockblob.Client {
	return s.container.NewBlockBlobClient(s.prefix + key)
}

// ifNoneThere has a request fail if there is an object.
func ifNoneThere() *blob.AccessConditions {
	anyTag := azcore.ETagAny
	return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &anyTag}}
}

// Put writes small objects by one request and large ones in blocks, each with its MD5, which the
// service verifies. An ErrExists may mean an object of this very call: its answer was lost, and it
// was sent again.
func (s *Azure) Put(ctx context.Context, key string, content io.Reader, size int64) error {
	part := max(partSize, (size+mostParts-1)/mostParts)
	buffer := make([]byte, min(part, size))
	if size > part {
		return s.putBlocks(ctx, key, content, size, buffer)
	}
	if err := fill(content, buffer, true); err != nil {
		return fmt.Errorf("write object %s: %w", key, err)
	}
	ctx, cancel := limited(ctx, len(buffer))
	defer cancel()
	_, err := s.blob(key).Upload(ctx, body(buffer), &blockblob.UploadOptions{AccessConditions: ifNoneThere(),
		TransactionalValidation: sum(buffer)})
	return s.failed("write", key, err)
}

// putBlocks writes an object in blocks, which are named by their content: what a call before has
// put, and did not come to commit, is not sent again. Of two calls at once the first that commits
// removes the blocks of the other. What was not committed the service removes after a week.
func (s *Azure) putBlocks(ctx context.Context, key string, content io.Reader, size int64, buffer []byte) error {
	there := s.uncommitted(ctx, key)
	var blocks []string
	for left := size; left > 0; left -= int64(len(buffer)) {
		buffer = buffer[:min(left, int64(len(buffer)))]
		if err := fill(content, buffer, left == int64(len(buffer))); err != nil {
			return fmt.Errorf("write object %s: %w", key, err)
		}
		of := sha256.Sum256(buffer)
		id := base64.StdEncoding.EncodeToString(fmt.Appendf(of[:26:26], "-%05d", len(blocks)))
		blocks = append(blocks, id)
		if there[id] == int64(len(buffer)) {
			continue
		}
		if err := s.putBlock(ctx, key, id, buffer); err != nil {
			return s.failed(fmt.Sprintf("write block %d of", len(blocks)), key, err)
		}
	}
	commit, cancel := limited(ctx, 0)
	defer cancel()
	_, err := s.blob(key).CommitBlockList(commit, blocks,
		&blockblob.CommitBlockListOptions{AccessConditions: ifNoneThere()})
	if bloberror.HasCode(err, bloberror.InvalidBlockList) { // committed by another call, or this one's answer was lost
		if there, _ := s.Size(ctx, key); there == size {
			return ErrExists
		}
	}
	return s.failed("commit", key, err)
}

// uncommitted are the sizes of the blocks that the service has of an object, by their names. If it
// does not tell, all are sent.
func (s *Azure) uncommitted(ctx context.Context, key string) map[string]int64 {
	ctx, cancel := limited(ctx, 0)
	defer cancel()
	out := map[string]int64{}
	list, err := s.blob(key).GetBlockList(ctx, blockblob.BlockListTypeUncommitted, nil)
	if err != nil {
		return out
	}
	for _, block := range list.UncommittedBlocks {
		if block.Name != nil && block.Size != nil {
			out[*block.Name] = *block.Size
		}
	}
	return out
}

func (s *Azure) putBlock(ctx context.Context, key, id string, content []byte) error {
	ctx, cancel := limited(ctx, len(content))
	defer cancel()
	_, err := s.blob(key).StageBlock(ctx, id, body(content),
		&blockblob.StageBlockOptions{TransactionalValidation: sum(content)})
	return err //nolint:wrapcheck // the caller says what it was about
}

// sum is what the service compares content with that it has received.
func sum(content []byte) blob.TransferValidationType {
	of := md5.Sum(content)
	return blob.TransferValidationTypeMD5(of[:])
}

func body(content []byte) io.ReadSeekCloser { return streaming.NopCloser(bytes.NewReader(content)) }

// Get reads an object to its end, or fails: what breaks off is resumed.
func (s *Azure) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	from := func(ctx context.Context, at int64) (io.ReadCloser, int64, error) {
		answer, err := s.blob(key).DownloadStream(ctx, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: at}})
		if err != nil || answer.ContentLength == nil {
			return answer.Body, -1, err //nolint:wrapcheck // failed wraps it
		}
		return answer.Body, *answer.ContentLength, nil
	}
	r := &reader{ctx: ctx, from: from, failed: func(err error) error { return s.failed("read", key, err) }}
	return r.read()
}

// Size asks for that of the object.
func (s *Azure) Size(ctx context.Context, key string) (int64, error) {
	ctx, cancel := limited(ctx, 0)
	defer cancel()
	is, err := s.blob(key).GetProperties(ctx, nil)
	if err == nil && is.ContentLength == nil {
		err = errors.New("the service does not tell its length")
	}
	if err != nil {
		return 0, s.failed("look for", key, err)
	}
	return *is.ContentLength, nil
}

// List asks for some thousands of objects at a time.
func (s *Azure) List(ctx context.Context, prefix string, each func(Object) error) error {
	whole, last := s.prefix+prefix, ""
	pages := s.container.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &whole})
	for pages.More() {
		asking, cancel := limited(ctx, 0)
		page, err := pages.NextPage(asking)
		cancel()
		if err != nil {
			return s.failed("list", prefix, err)
		}
		for _, item := range page.Segment.BlobItems {
			if item.Name == nil || item.Properties == nil || item.Properties.ContentLength == nil ||
				item.Properties.LastModified == nil {
				return s.failed("list", prefix, errors.New("an object has no name, size or time"))
			}
			key := strings.TrimPrefix(*item.Name, s.prefix)
			if last != "" && key <= last {
				return fmt.Errorf("list objects %s of container %s: %s comes after %s, so the list is not to be "+
					"relied on", prefix, s.name, key, last)
			}
			last = key
			if err := each(Object{Key: key, Size: *item.Properties.ContentLength,
				Written: *item.Properties.LastModified}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Delete removes the object.
func (s *Azure) Delete(ctx context.Context, key string) error {
	ctx, cancel := limited(ctx, 0)
	defer cancel()
	_, err := s.blob(key).Delete(ctx, nil)
	if bloberror.HasCode(err, bloberror.BlobNotFound) {
		return nil
	}
	return s.failed("delete", key, err)
}

// Public says that anybody can read an object.
func (s *Azure) Public(ctx context.Context, key string) (bool, error) {
	ctx, cancel := limited(ctx, 0)
	defer cancel()
	_, err := s.public.NewBlockBlobClient(s.prefix+key).GetProperties(ctx, nil)
	var answer *azcore.ResponseError
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &answer) && answer.StatusCode < http.StatusInternalServerError:
		// 401, 403, 404 or 409: which, depends on the account.
		return false, nil
	}
	return false, s.failed("read without credentials", key, err)
}

// failed is the error of a request about an object, or about those of a prefix.
func (s *Azure) failed(verb, key string, err error) error {
	what := fmt.Sprintf("%s object %s of container %s", verb, s.prefix+key, s.name)
	switch {
	case err == nil:
		return nil
	case bloberror.HasCode(err, bloberror.BlobAlreadyExists, bloberror.ConditionNotMet):
		return ErrExists
	case bloberror.HasCode(err, bloberror.BlobNotFound):
		return fmt.Errorf("%s: %w", what, ErrNotFound)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w", what, err)
	}
	p := &Problem{Request: what, Err: err, Reason: v1alpha1.ReasonStoreUnreachable, Help: unreachable(err)}
	var unknown *azidentity.AuthenticationFailedError
	if errors.As(err, &unknown) {
		why := unauthenticated(unknown)
		p.Err, p.Reason, p.Help = why, why.Reason, ""
		return p
	}
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		return p
	}
	// Its text is the whole answer. The user has chosen the endpoint, and the request was made from
	// here: what else it says is nobody's business.
	p.Err = fmt.Errorf("the service answers %d %s", answer.StatusCode, answer.ErrorCode)
	p.Reason, p.Help = s.explained(answer)
	return p
}

// explained gives the reason of an answer, and what would help.
func (s *Azure) explained(answer *azcore.ResponseError) (reason, help string) {
	denied := "correct the access key in the Secret"
	if s.byIdentity {
		denied = "give the identity of the service account the role Storage Blob Data Contributor on the container"
	}
	switch bloberror.Code(answer.ErrorCode) { //nolint:exhaustive // the others say enough by themselves
	case bloberror.ContainerNotFound, bloberror.ContainerBeingDeleted, bloberror.ContainerDisabled:
		return v1alpha1.ReasonBucketMissing, "create the container, or correct its name, the account or the endpoint"
	case bloberror.AuthenticationFailed, bloberror.AuthorizationFailure, bloberror.InsufficientAccountPermissions,
		bloberror.AccountIsDisabled:
		if !s.byIdentity {
			denied += ", allow access by keys to the account"
		}
		return v1alpha1.ReasonAccessDenied, denied + ", and the addresses of the hosts if the network of the account " +
			"is restricted; the clock of the host may also be wrong"
	case bloberror.UnsupportedHeader, bloberror.UnsupportedQueryParameter:
		return v1alpha1.ReasonUnsupportedService, "the service does not know a request that backups need"
	}
	switch answer.StatusCode {
	case http.StatusForbidden, http.StatusUnauthorized:
		return v1alpha1.ReasonAccessDenied, denied
	case http.StatusNotImplemented:
		return v1alpha1.ReasonUnsupportedService, "the service does not know a request that backups need"
	}
	return v1alpha1.ReasonStoreUnreachable, ""
}
