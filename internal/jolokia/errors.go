package jolokia

import (
	"errors"
	"fmt"
)

// What can go wrong, for errors.Is. The first group is about the connection: nothing is known of
// the bean then. The second group are answers: the JVM is alive and said no.
var (
	// ErrUnreachable means that no answer came over the connection: refused, reset, closed or timed
	// out. A request that changes something may or may not have taken effect.
	ErrUnreachable = errors.New("JVM does not answer")
	// ErrUnauthorized means that the server refused the credential (HTTP 401).
	ErrUnauthorized = errors.New("credential refused")
	// ErrProtocol means that something answered, but not in the form that this client understands.
	ErrProtocol = errors.New("answer is not what the protocol says")
	// ErrTooLarge means that the answer was longer than Config.MaxResponseBytes.
	ErrTooLarge = errors.New("answer is too large")

	// ErrInstanceNotFound means that no bean has this name; while a JVM starts its beans are not
	// there yet.
	ErrInstanceNotFound = errors.New("no such bean")
	// ErrAttributeNotFound means that the bean has no attribute of this name: another release of
	// the server.
	ErrAttributeNotFound = errors.New("no such attribute")
	// ErrOperationNotFound means that the bean has no operation of this name or signature: another
	// release of the server.
	ErrOperationNotFound = errors.New("no such operation")
	// ErrForbidden means that the server's access policy refuses the request.
	ErrForbidden = errors.New("forbidden by the access policy")
	// ErrException means that the attribute or operation threw a Java exception, which Error
	// describes.
	ErrException = errors.New("java exception")
)

// Error is a negative answer to one request.
type Error struct {
	// Status is the status inside the answer, in the manner of HTTP: 400, 403, 404, 500.
	Status int
	// Class is the class of the Java exception, such as java.lang.IllegalStateException.
	Class string
	// Message is the message of the exception, without the class; often empty.
	Message string
	// Request is what was asked.
	Request Request

	kind error
}

// Error says what was asked and what the server said.
func (e *Error) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("%s: %s: %s (status %d)", e.Request, e.kind, e.Class, e.Status)
	}
	return fmt.Sprintf("%s: %s: %s: %s (status %d)", e.Request, e.kind, e.Class, e.Message, e.Status)
}

// Unwrap gives the kind of the error: one of the second group above.
func (e *Error) Unwrap() error { return e.kind }
