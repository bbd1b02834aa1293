package jolokia

import (
	"encoding/json"
	"errors"
	"testing"
)

func TestRecordedReads(t *testing.T) {
	for _, release := range releases {
		answers := answersOf(t, release, "reads")
		var state struct {
			OperationMode   string
			Joined, Drained bool
		}
		if err := answers[0].Decode(&state); err != nil {
			t.Fatal(err)
		}
		if state.OperationMode != "NORMAL" || !state.Joined || state.Drained {
			t.Errorf("%s: state %+v", release, state)
		}
		// The attribute came with 5.0.
		if bootstrap := answers[1].Err; (release == "5.0.6") != (bootstrap == nil) ||
			bootstrap != nil && !errors.Is(bootstrap, ErrAttributeNotFound) {
			t.Errorf("%s: read of BootstrapState: %v", release, bootstrap)
		}
		if !errors.Is(answers[2].Err, ErrAttributeNotFound) {
			t.Errorf("%s: one unknown attribute among known ones: %v, want ErrAttributeNotFound for the whole request",
				release, answers[2].Err)
		}
		if !errors.Is(answers[3].Err, ErrInstanceNotFound) {
			t.Errorf("%s: read of a bean that does not exist: %v", release, answers[3].Err)
		}
		var sizes []int64
		if err := answers[4].Decode(&sizes); err != nil || len(sizes) != 0 {
			t.Errorf("%s: path into an empty list: %v, %v", release, sizes, err)
		}
	}
}

func TestRecordedWrites(t *testing.T) {
	for _, release := range releases {
		answers := answersOf(t, release, "writes")
		var before int
		if err := answers[0].Decode(&before); err != nil || before != 10000 {
			t.Errorf("%s: a write answers the value before it: %d, %v", release, before, err)
		}
		if !errors.Is(answers[2].Err, ErrException) {
			t.Errorf("%s: write of a value of another type: %v", release, answers[2].Err)
		}
		if !errors.Is(answers[3].Err, ErrAttributeNotFound) {
			t.Errorf("%s: write of an unknown attribute: %v", release, answers[3].Err)
		}
	}
}

func TestRecordedCalls(t *testing.T) {
	const illegalArgument = "java.lang.IllegalArgumentException"
	for _, release := range releases {
		answers := answersOf(t, release, "calls")
		var replication string
		if err := answers[0].Decode(&replication); err != nil || replication == "" {
			t.Errorf("%s: replication %q, %v", release, replication, err)
		}
		refusals := []struct {
			answer int
			kind   error
			status int
			class  string
			text   string
		}{
			{1, ErrException, 400, illegalArgument, ""},
			{2, ErrOperationNotFound, 400, illegalArgument,
				"No operation noSuchOperation found on MBean " + storageService},
			{5, ErrException, 500, "java.lang.UnsupportedOperationException", "Host ID not found."},
			{6, ErrException, 400, illegalArgument, "Invalid UUID string: not-a-host-id"},
		}
		for _, want := range refusals {
			var got *Error
			if !errors.As(answers[want.answer].Err, &got) {
				t.Errorf("%s: answer %d: %v is no *Error", release, want.answer, answers[want.answer].Err)
				continue
			}
			if !errors.Is(got, want.kind) || got.Status != want.status || got.Class != want.class ||
				got.Message != want.text {
				t.Errorf("%s: answer %d: %+v, want %+v", release, want.answer, got, want)
			}
		}
		if !errors.Is(answers[3].Err, ErrOperationNotFound) {
			t.Errorf("%s: a signature that does not exist: %v", release, answers[3].Err)
		}
		status := &[]string{"untouched"}
		if err := answers[4].Decode(&status); err != nil || status != nil {
			t.Errorf("%s: null decodes into %v, %v; want nil", release, status, err)
		}
	}
}

func TestLongsKeepAllDigits(t *testing.T) {
	requests := []Request{Read("a:b=c", "Token")}
	answers, err := decodeAnswers([]byte(`[{"status":200,"value":{"Token":-9223372036854775807}}]`), requests)
	if err != nil {
		t.Fatal(err)
	}
	var value struct{ Token int64 }
	if err := answers[0].Decode(&value); err != nil || value.Token != -9223372036854775807 {
		t.Errorf("token %d, %v", value.Token, err)
	}
}

func TestAnswersAgainstTheProtocolAreRefused(t *testing.T) {
	one := []Request{Read("a:b=c", "X")}
	for name, body := range map[string]string{
		"nothing":                "",
		"no JSON":                "<html>",
		"an object":              `{"status":200,"value":1}`,
		"a refusal as an object": `{"status":400,"error":"java.lang.Exception : no"}`,
		"null":                   `null`,
		"too few":                `[]`,
		"too many":               `[{"status":200,"value":1},{"status":200,"value":1}]`,
		"null element":           `[null]`,
		"no status":              `[{"value":1}]`,
		"text status":            `[{"status":"200","value":1}]`,
		"no value":               `[{"status":200}]`,
		"refusal without reason": `[{"status":500}]`,
		"text after the end":     `[{"status":200,"value":1}]x`,
		"two values":             `[{"status":200,"value":1}][]`,
		"cut off":                `[{"status":200,"value":{"a":1`,
	} {
		if answers, err := decodeAnswers([]byte(body), one); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: answers %v, error %v; want ErrProtocol", name, answers, err)
		}
	}
}

func TestDecodeRefusesAnotherType(t *testing.T) {
	answer := Answer{Value: json.RawMessage(`"NORMAL"`), request: Read("a:b=c", "X")}
	var number int
	if err := answer.Decode(&number); !errors.Is(err, ErrProtocol) {
		t.Errorf("text decoded as a number: %d, %v", number, err)
	}
}

// FuzzDecodeAnswers holds the decoder to its promise for any body: an error, or as many answers as
// requests, each with either a JSON value or an *Error.
func FuzzDecodeAnswers(f *testing.F) {
	for _, seed := range []string{
		`[{"status":200,"value":{"OperationMode":"NORMAL"}},{"status":404,"error_type":"javax.management.InstanceNotFoundException","error":"javax.management.InstanceNotFoundException : x"}]`,
		`[{"status":200,"value":null},{"status":400,"error":"java.lang.IllegalArgumentException : No operation x found on MBean y"}]`,
		`[{"status":200,"value":1},{"status":403,"error":"x"}]`, `{"status":500}`, `[null,null]`, `[[],{}]`, ``,
	} {
		f.Add([]byte(seed))
	}
	requests := []Request{Read("a:b=c", "X"), Exec("a:b=c", "x()")}
	kinds := []error{ErrInstanceNotFound, ErrAttributeNotFound, ErrOperationNotFound, ErrForbidden, ErrException}
	f.Fuzz(func(t *testing.T, body []byte) {
		answers, err := decodeAnswers(body, requests)
		if err != nil {
			if !errors.Is(err, ErrProtocol) || answers != nil {
				t.Fatalf("answers %v with error %v", answers, err)
			}
			return
		}
		if len(answers) != len(requests) {
			t.Fatalf("%d answers to %d requests", len(answers), len(requests))
		}
		for _, answer := range answers {
			if answer.Err == nil {
				if !json.Valid(answer.Value) {
					t.Fatalf("value %q is no JSON", answer.Value)
				}
				continue
			}
			matched := 0
			for _, kind := range kinds {
				if errors.Is(answer.Err, kind) {
					matched++
				}
			}
			if matched != 1 || answer.Err.Error() == "" || answer.Value != nil {
				t.Fatalf("refusal %v is of %d kinds, value %q", answer.Err, matched, answer.Value)
			}
		}
	})
}
