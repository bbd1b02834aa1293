package jolokia

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Answer is the answer to one element of a bulk request.
type Answer struct {
	// Value is the value as the server sent it; nil if Err is set. Numbers keep all their digits.
	Value json.RawMessage
	// Err is an *Error if the server refused this element.
	Err error

	request Request
}

// Decode stores the value in into, which is a pointer. The whole value must fit its type. JSON null
// leaves into as it is, so use a pointer to a pointer where null has a meaning.
func (a Answer) Decode(into any) error {
	if a.Err != nil {
		return a.Err
	}
	if err := json.Unmarshal(a.Value, into); err != nil {
		return fmt.Errorf("%s: %w: %w", a.request, ErrProtocol, err)
	}
	return nil
}

// element is one answer on the wire.
type element struct {
	Status    *int            `json:"status"`
	Value     json.RawMessage `json:"value"`
	Error     string          `json:"error"`
	ErrorType string          `json:"error_type"`
}

// decodeAnswers reads the answer to a bulk request. It holds the server to the protocol: exactly
// one array with one object for each request, each with a status, and a value where the status is
// 200.
func decodeAnswers(body []byte, requests []Request) ([]Answer, error) {
	if first := firstByte(body); first == '{' {
		// An error in the envelope is answered by a single object.
		var e element
		if err := json.Unmarshal(body, &e); err != nil {
			return nil, fmt.Errorf("decode answer: %w: %w", ErrProtocol, err)
		}
		return nil, fmt.Errorf("%w: one object instead of an array of %d: %s %s", ErrProtocol, len(requests),
			e.ErrorType, e.Error)
	}
	var elements []*element
	if err := json.Unmarshal(body, &elements); err != nil {
		return nil, fmt.Errorf("decode answer: %w: %w", ErrProtocol, err)
	}
	if len(elements) != len(requests) {
		return nil, fmt.Errorf("%w: %d answers to %d requests", ErrProtocol, len(elements), len(requests))
	}
	answers := make([]Answer, len(requests))
	for i, e := range elements {
		answer, err := e.answer(requests[i])
		if err != nil {
			return nil, fmt.Errorf("%w: answer %d of %d (%s): %w", ErrProtocol, i+1, len(requests), requests[i], err)
		}
		answers[i] = answer
	}
	return answers, nil
}

// answer turns one element of the wire into an Answer.
func (e *element) answer(request Request) (Answer, error) {
	switch {
	case e == nil:
		return Answer{}, errors.New("null instead of an object")
	case e.Status == nil:
		return Answer{}, errors.New("no status")
	case *e.Status == statusOK && e.Value == nil:
		return Answer{}, errors.New("status 200 without a value")
	case *e.Status == statusOK:
		return Answer{Value: e.Value, request: request}, nil
	case e.ErrorType == "" && e.Error == "":
		return Answer{}, fmt.Errorf("status %d without an error", *e.Status)
	default:
		return Answer{Err: newError(*e.Status, e.ErrorType, e.Error, request), request: request}, nil
	}
}

// Status codes inside answers.
const (
	statusOK        = 200
	statusForbidden = 403
)

// newError classifies a negative answer. The server repeats the class of the exception in front of
// its message.
func newError(status int, class, text string, request Request) *Error {
	e := &Error{Status: status, Class: class, Request: request, kind: ErrException}
	if class == "" {
		class, _, _ = strings.Cut(text, " : ")
		e.Class = class
	}
	e.Message = strings.TrimPrefix(strings.TrimPrefix(text, class), " : ")
	switch {
	case class == "javax.management.InstanceNotFoundException":
		e.kind = ErrInstanceNotFound
	case class == "javax.management.AttributeNotFoundException":
		e.kind = ErrAttributeNotFound
	case status == statusForbidden:
		e.kind = ErrForbidden
	case request.Type == typeExec && namesMissingOperation(e.Message):
		e.kind = ErrOperationNotFound
	}
	return e
}

// namesMissingOperation recognises the two messages by which Jolokia 1.7 and 2.x refuse an unknown
// operation; both come as an IllegalArgumentException with status 400, as do arguments that
// Cassandra itself refuses.
func namesMissingOperation(message string) bool {
	return strings.HasPrefix(message, "No operation ") && strings.Contains(message, " on MBean ") ||
		strings.HasPrefix(message, "Operation ") && strings.Contains(message, " is overloaded. Signatures found: ")
}

// firstByte is the first byte that is not white space, or 0.
func firstByte(data []byte) byte {
	trimmed := bytes.TrimLeft(data, " \t\r\n")
	if len(trimmed) == 0 {
		return 0
	}
	return trimmed[0]
}
