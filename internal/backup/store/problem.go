package store

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"

	"helenus.io/helenus/api/v1alpha1"
)

// Problem is why a request to a service failed.
type Problem struct {
	// Reason of ConditionReady of a store that has the problem.
	Reason string
	// Request that failed, and what would help; none is known if that is empty.
	Request string
	Help    string
	Err     error
}

func (p *Problem) Error() string {
	text := p.Request + ": " + p.Err.Error()
	if p.Help != "" {
		text += ": " + p.Help
	}
	return text
}

func (p *Problem) Unwrap() error { return p.Err }

// failed is the error of a request about an object, or about those of a prefix.
func (s *S3) failed(verb, key string, err error) error {
	answer := minio.ToErrorResponse(err)
	var unknown *Problem
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unknown): // who asks
		return &Problem{Request: fmt.Sprintf("%s object %s of bucket %s", verb, s.prefix+key, s.bucket), Err: err,
			Reason: unknown.Reason}
	case answer.StatusCode == http.StatusPreconditionFailed:
		return ErrExists
	case answer.Code == minio.NoSuchKey:
		return fmt.Errorf("%s object %s of bucket %s: %w", verb, s.prefix+key, s.bucket, ErrNotFound)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s object %s of bucket %s: %w", verb, s.prefix+key, s.bucket, err)
	}
	if answer.StatusCode != 0 && strings.HasPrefix(answer.Code, fmt.Sprint(answer.StatusCode)) {
		// Not in S3's own form. What else it says is nobody's business: the user has chosen the
		// endpoint, and the request was made from here.
		err = fmt.Errorf("the endpoint answers %q, and not as a service of S3", answer.Code)
	}
	p := &Problem{Request: fmt.Sprintf("%s object %s of bucket %s", verb, s.prefix+key, s.bucket), Err: err}
	p.Reason, p.Help = s.explain(err, answer)
	return p
}

// explain gives the reason of a failure, and what would help.
func (s *S3) explain(err error, answer minio.ErrorResponse) (reason, help string) {
	switch answer.Code {
	case minio.NoSuchBucket:
		return v1alpha1.ReasonBucketMissing, "create the bucket, or correct its name, its region or the endpoint"
	case "RequestTimeTooSkewed", "RequestExpired":
		return v1alpha1.ReasonClockSkewed, "the clock of the host or that of the service is wrong"
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken":
		if s.byRole {
			return v1alpha1.ReasonAccessDenied, "the endpoint is to be one that knows the roles of Amazon, and the " +
				"clock of the host right"
		}
		return v1alpha1.ReasonAccessDenied, "correct the access key in the Secret"
	case minio.AuthorizationHeaderMalformed, minio.InvalidRegion, "PermanentRedirect":
		if answer.Region != "" {
			return v1alpha1.ReasonBucketMissing, "set the region to " + answer.Region
		}
		return v1alpha1.ReasonBucketMissing, "correct the region or the endpoint"
	}
	switch answer.StatusCode {
	case http.StatusForbidden, http.StatusUnauthorized:
		who := "access key"
		if s.byRole {
			who = "role of the service account"
		}
		help = "allow the " + who + " GetObject, PutObject, DeleteObject and AbortMultipartUpload on objects of the " +
			"prefix, and ListBucket on the bucket"
		if s.lock != nil {
			help += "; for locks also GetObjectRetention, PutObjectRetention, GetObjectVersion and " +
				"DeleteObjectVersion there, and GetBucketObjectLockConfiguration"
		}
		return v1alpha1.ReasonAccessDenied, help
	case http.StatusMovedPermanently:
		return v1alpha1.ReasonBucketMissing, "the bucket is in another region: set the region of the store"
	case http.StatusNotImplemented:
		return v1alpha1.ReasonUnsupportedService, "the service does not know a request that backups need"
	}
	return v1alpha1.ReasonStoreUnreachable, unreachable(err)
}

// unreachable says what would help against a service that does not answer as one.
func unreachable(err error) string {
	var (
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
		dns     *net.DNSError
	)
	switch {
	case errors.As(err, &unknown):
		return "put the certificate of its authority into the Secret as " + v1alpha1.KeyStoreAuthority
	case errors.As(err, &name):
		return "use the name that its certificate is for as the endpoint"
	case errors.As(err, &invalid):
		return "renew the certificate of the service, or correct the clock of the host"
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"): // net/http has no type for it
		return "the service does not speak TLS: set the endpoint to http://, or have it speak TLS"
	case errors.As(err, &dns):
		return "correct the host of the endpoint"
	}
	return ""
}
