package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Verb is what a request does.
type Verb string

// The verbs of requests.
const (
	Get    Verb = "get"
	List   Verb = "list"
	Create Verb = "create"
	Update Verb = "update"
	Patch  Verb = "patch"
	Apply  Verb = "apply"
	Delete Verb = "delete"
	// DeleteCollection deletes all objects of a kind that a selector matches.
	DeleteCollection Verb = "deletecollection"
)

// Writes says that a verb changes something.
func (v Verb) Writes() bool { return v != Get && v != List }

const (
	subresourceStatus  = "status"
	subresourceResize  = "resize"
	subresourceBinding = "binding"
)

// Request is one request to a server.
type Request struct {
	// Sequence counts the requests of a server, from 1.
	Sequence    uint64
	User        string
	Verb        Verb
	Kind        string
	Subresource string
	Namespace   string
	// Name is empty for lists, and for what gets a generated name.
	Name string
	// UID and Version are of the object that a change or a deletion is of; empty for any.
	UID     types.UID
	Version string

	resource schema.GroupResource
}

// String is a request in words.
func (r *Request) String() string {
	what := r.Kind
	if r.Subresource != "" {
		what += "/" + r.Subresource
	}
	return fmt.Sprintf("%s %s %s %s/%s", r.User, r.Verb, what, r.Namespace, r.Name)
}

// Interceptor stands before and after every request. What it panics with goes through to the caller
// of the client; the server stays as it is at that point, so that a process can be killed exactly
// before or after a write.
type Interceptor interface {
	// Before a request has any effect. An error is the answer, and the request has no effect.
	Before(*Request) error
	// After a request, whose answer is err. An error becomes the answer instead, although what
	// happened has happened; nil leaves the answer as it is.
	After(r *Request, err error) error
}

// request does one request between the interceptor's two calls. The effect returns what gives the
// answer to the client, which is not called if the answer is lost.
func (s *Server) request(ctx context.Context, r *Request, effect func() (answer func() error, err error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.requests++
	r.Sequence = s.requests
	if s.interceptor == nil {
		answer, err := effect()
		if err != nil {
			return status(err)
		}
		return answer()
	}
	if err := s.interceptor.Before(r); err != nil {
		return err
	}
	answer, err := effect()
	if err != nil {
		err = status(err)
	}
	if instead := s.interceptor.After(r, err); instead != nil {
		return instead
	}
	if err != nil {
		return err
	}
	return answer()
}

// status makes every error one that the real server can answer with.
func status(err error) error {
	if known := apierrors.APIStatus(nil); errors.As(err, &known) {
		return err
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonUnknown,
		Message: err.Error(),
	}}
}

// The usual answers of a server that is in trouble, as the real one gives them.

// Conflict is what a write gets that rests on an old version.
func Conflict(r *Request) error {
	return apierrors.NewConflict(r.resource, r.Name, errors.New(staleMessage))
}

// Unavailable is 503.
func Unavailable(*Request) error {
	return apierrors.NewServiceUnavailable("apiserver is shutting down")
}

// Forbidden is 403: a role or a policy does not allow it.
func Forbidden(r *Request) error {
	//nolint:staticcheck // the server's words
	return apierrors.NewForbidden(r.resource, r.Name,
		fmt.Errorf("User %q cannot %s resource %q", r.User, r.Verb, r.resource.Resource))
}

// ServerTimeout is 504: the server gave up on it, with or without effect.
func ServerTimeout(r *Request) error {
	return apierrors.NewTimeoutError(fmt.Sprintf("request did not complete within the allotted timeout: %s", r.Verb), 0)
}

// ClientTimeout is what the client itself says when no answer came in time.
func ClientTimeout(*Request) error { return context.DeadlineExceeded }
