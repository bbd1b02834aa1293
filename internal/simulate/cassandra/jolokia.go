package cassandra

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"helenus.io/helenus/internal/simulate/process"
)

// request is one element of a bulk request to Jolokia.
type request struct {
	Type      string            `json:"type"`
	MBean     string            `json:"mbean"`
	Attribute json.RawMessage   `json:"attribute"`
	Operation string            `json:"operation"`
	Arguments []json.RawMessage `json:"arguments"`
	Value     json.RawMessage   `json:"value"`
	Path      string            `json:"path"`

	// names are the attributes of a read; listed says that they came as a list, and are answered as
	// an object.
	names  []string
	listed bool
}

// bulk is the body of an exchange, read once: nodes are asked the same again and again.
type bulk struct {
	requests []request
	invalid  bool
}

// rememberedBulks bounds what is remembered; bodies with arguments that vary are many.
const rememberedBulks = 512

// answerTime is what an answer takes at most on a host of the usual speed; it counts only on slow
// ones.
const answerTime = 20 * time.Millisecond

// RoundTrip answers an exchange with the Jolokia agent in this JVM. In a task of the timeline it
// takes the time that the JVM needs, and ends with the request's context; what it began continues
// in the JVM. Outside of a task nothing takes time, and what would is an error.
func (p *Process) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err = errors.Join(err, r.Body.Close()); err != nil {
		return nil, err
	}
	ctx := r.Context()
	began := p.line.Now()
	if p.ended || !p.answers {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	if !p.await(ctx, func() bool { return !p.frozen || p.ended }, p.net.options.ClientTimeout) {
		return nil, timedOut(ctx)
	}
	if user, password, _ := r.BasicAuth(); user != p.settings.user || password != p.settings.password {
		return response(http.StatusUnauthorized, nil), nil
	}
	b := p.net.readBulk(body)
	if b.invalid {
		return response(http.StatusOK, []byte(`{"error_type":"java.lang.IllegalArgumentException","error":"java.lang.IllegalArgumentException : `+
			`Invalid JSON request","status":400}`)), nil
	}
	// A JVM under load answers later; the client of an operation has more patience.
	if factor, slow := p.net.slow[p.address]; slow && factor > 1 {
		if err := process.Sleep(ctx, p.line, time.Duration(float64(p.net.within(0, answerTime))*factor)); err != nil {
			return nil, err
		}
	}
	out := make([]byte, 0, p.answer.size+512)
	out = append(out, '[')
	blocking := false
	for i := range b.requests {
		if i > 0 {
			out = append(out, ',')
		}
		var blocked bool
		out, blocked, err = p.element(ctx, out, &b.requests[i])
		blocking = blocking || blocked
		if err == nil && p.assertion != nil {
			failed := p.assertion
			p.assertion = nil
			encoded, err := encodeError(failed)
			return response(http.StatusOK, encoded), err
		}
		if err == nil && p.ended {
			err = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
		}
		if err != nil {
			return nil, err
		}
	}
	if !blocking && p.line.Now().Sub(began) >= p.net.options.ClientTimeout {
		return nil, context.DeadlineExceeded
	}
	out = append(out, ']')
	p.answer.size = len(out)
	return response(http.StatusOK, out), nil
}

func timedOut(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return context.DeadlineExceeded
}

func response(status int, body []byte) *http.Response {
	return &http.Response{
		StatusCode: status, Status: strconv.Itoa(status) + " " + http.StatusText(status), Proto: "HTTP/1.1",
		ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}

func (n *Network) readBulk(body []byte) *bulk {
	if b, known := n.bulks[string(body)]; known {
		return b
	}
	b := &bulk{}
	if b.invalid = json.Unmarshal(body, &b.requests) != nil; !b.invalid {
		for i := range b.requests {
			b.requests[i].readNames()
		}
	}
	if len(n.bulks) >= rememberedBulks {
		clear(n.bulks)
	}
	n.bulks[string(body)] = b
	return b
}

func (r *request) readNames() {
	if strings.HasPrefix(r.MBean, beanTables) {
		r.MBean = beanTables
	}
	if len(r.Attribute) == 0 {
		return
	}
	if r.Attribute[0] == '[' {
		r.listed = json.Unmarshal(r.Attribute, &r.names) == nil
		return
	}
	var name string
	if json.Unmarshal(r.Attribute, &name) == nil {
		r.names = []string{name}
	}
}

// javaError is an exception of the JVM in the words of Jolokia.
type javaError struct {
	class, message string
}

func (e *javaError) status() int {
	switch e.class {
	case runtimeError:
		return http.StatusInternalServerError
	case instanceNotFound, attributeNotFound:
		return http.StatusNotFound
	case illegalArgument, "java.lang.NumberFormatException":
		return http.StatusBadRequest
	default:
		return http.StatusInternalServerError
	}
}

// runtimeError is how an Error of Java comes out, such as a failed assertion: Jolokia answers it in
// the place of the whole bulk (seen with 2.3.0).
const runtimeError = "javax.management.RuntimeErrorException"

const (
	instanceNotFound  = "javax.management.InstanceNotFoundException"
	attributeNotFound = "javax.management.AttributeNotFoundException"
)

func exception(class, format string, arguments ...any) *javaError {
	return &javaError{class, fmt.Sprintf(format, arguments...)}
}

// element answers one request; blocked says that it was an operation that may take long. An error
// ends the whole exchange.
func (p *Process) element(ctx context.Context, out []byte, r *request) (_ []byte, blocked bool, err error) {
	start := len(out)
	out = append(out, `{"value":`...)
	var failed *javaError
	switch r.Type {
	case "version":
		out = append(out, `{"agent":"2.3.0","protocol":"8.0","info":{"proxy":{},"jmx":{}}}`...)
	case "read":
		out, failed = p.read(out, r)
	case "write":
		out, failed = p.write(out, r)
	case "exec":
		var result json.RawMessage
		result, blocked, failed, err = p.exec(ctx, r)
		out = append(out, result...)
	default:
		failed = exception(illegalArgument, "No type with name '%s' exists", r.Type)
	}
	if err != nil {
		return out, blocked, err
	}
	if failed == nil {
		out = append(out, `,"status":200,"timestamp":`...)
		out = strconv.AppendInt(out, p.now().Unix(), 10)
		return append(out, '}'), blocked, nil
	}
	if failed.class == runtimeError {
		p.assertion = failed
	}
	encoded, err := encodeError(failed)
	return append(out[:start], encoded...), blocked, err
}

func encodeError(failed *javaError) ([]byte, error) {
	text := failed.class
	if failed.message != "" {
		text += " : " + failed.message
	}
	return json.Marshal(map[string]any{"error_type": failed.class, "error": text, "status": failed.status()})
}

// read answers attributes: an object of them, or the one that was asked for by itself.
func (p *Process) read(out []byte, r *request) ([]byte, *javaError) {
	if !p.registered(r.MBean) {
		return out, &javaError{instanceNotFound, r.MBean}
	}
	if r.listed {
		out = append(out, '{')
	}
	for i, name := range r.names {
		if i > 0 {
			out = append(out, ',')
		}
		if r.listed {
			out = append(strconv.AppendQuote(out, name), ':')
		}
		a, found := attributes[attributeName{r.MBean, name}]
		switch {
		case found && (a.since50 && !p.is50()):
			found = false
		case found:
			var failed *javaError
			if out, failed = a.get(p, out, r.Path); failed != nil {
				return out, failed
			}
		default:
			out, found = p.readHot(out, r.MBean, name)
		}
		if !found {
			return out, exception(attributeNotFound, "No such attribute: %s", name)
		}
	}
	if r.listed {
		out = append(out, '}')
	}
	return out, nil
}

// write sets an attribute and answers what it was before.
func (p *Process) write(out []byte, r *request) ([]byte, *javaError) {
	if !p.registered(r.MBean) {
		return out, &javaError{instanceNotFound, r.MBean}
	}
	if len(r.names) != 1 {
		return out, exception(illegalArgument, "A write names one attribute")
	}
	if _, readOnly := attributes[attributeName{r.MBean, r.names[0]}]; readOnly {
		return out, exception(attributeNotFound, "Read-only attribute: %s", r.names[0])
	}
	return p.writeHot(out, r.MBean, r.names[0], r.Value)
}

// exec calls an operation. One that takes its time runs beside the exchange, and continues when the
// client has left.
func (p *Process) exec(ctx context.Context, r *request) (json.RawMessage, bool, *javaError, error) {
	if !p.registered(r.MBean) {
		return nil, false, &javaError{instanceNotFound, r.MBean}, nil
	}
	o, failed := p.findOperation(r)
	if failed != nil {
		return nil, false, failed, nil
	}
	if !o.blocks {
		result, failed := o.call(p, r.Arguments)
		return result, false, failed, nil
	}
	var result json.RawMessage
	done := false
	p.spawn(o.name, func() {
		result, failed = o.call(p, r.Arguments)
		done = true
	})
	if !p.await(ctx, func() bool { return done || p.ended }, -1) {
		if p.line.Running() == nil {
			return nil, true, nil, fmt.Errorf("operation %s takes time: call it in a task of the timeline", o.name)
		}
		return nil, true, nil, timedOut(ctx)
	}
	if !done {
		return nil, true, nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
	return result, true, failed, nil
}

// findOperation looks an operation up by name and signature, with Jolokia's two refusals.
func (p *Process) findOperation(r *request) (operation, *javaError) {
	name, _, _ := strings.Cut(r.Operation, "(")
	var known []string
	for _, o := range operations[r.MBean] {
		if o.name != name || o.since50 && !p.is50() {
			continue
		}
		if o.name+o.signature == r.Operation {
			return o, nil
		}
		known = append(known, o.signature)
	}
	if o, found := p.guardrailOperation(r); found {
		return o, nil
	}
	if len(known) == 0 {
		return operation{}, exception(illegalArgument, "No operation %s found on MBean %s", name, r.MBean)
	}
	return operation{}, exception(illegalArgument, "No operation %s on MBean %s exists. Known signatures: %s",
		r.Operation, r.MBean, strings.Join(known, ","))
}

// argument decodes one argument of an operation.
func argument[T any](arguments []json.RawMessage, i int) (T, *javaError) {
	var value T
	if i >= len(arguments) {
		return value, exception(illegalArgument, "%d arguments given", len(arguments))
	}
	if err := json.Unmarshal(arguments[i], &value); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return value, exception("java.lang.NumberFormatException", "For input string: %s", arguments[i])
		}
		return value, exception(illegalArgument, "%v", err)
	}
	return value, nil
}
