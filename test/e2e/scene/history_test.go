package scene

import (
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// Operations on register 1, called and returned at whole seconds.
func read(call, back int, is int64) porcupine.Operation {
	return on(1, call, back, input{kind: reading}, output{is: is})
}

func set(call, back int, expected, value int64) porcupine.Operation {
	return on(1, call, back, input{kind: exchanging, expected: expected, value: value}, output{applied: true})
}

func refused(call, back int, expected, value, is int64) porcupine.Operation {
	return on(1, call, back, input{kind: exchanging, expected: expected, value: value}, output{is: is})
}

func unknown(call int, expected, value int64) porcupine.Operation {
	return on(1, call, call+2, input{kind: exchanging, expected: expected, value: value}, output{unknown: true})
}

func on(register, call, back int, in input, out output) porcupine.Operation {
	in.register = register
	return operation(0, in, out, time.Duration(call)*time.Second, time.Duration(back)*time.Second)
}

func TestHistories(t *testing.T) {
	for name, c := range map[string]struct {
		history history
		// refused are words of what is wrong; empty if nothing is.
		refused string
	}{
		"nothing": {},
		"one after the other": {history: history{read(0, 1, 0), set(2, 3, 0, 5), read(4, 5, 5), refused(6, 7, 0, 6, 5),
			set(8, 9, 5, 7), read(10, 11, 7)}},
		"at the same time, in either order": {history: history{set(0, 9, 0, 5), read(1, 2, 0), read(3, 8, 5),
			refused(4, 7, 0, 6, 5)}},
		"a lost update": {history: history{set(0, 1, 0, 5), set(2, 3, 5, 6), set(4, 5, 5, 7)},
			refused: "5 → 7 — this has no place"},
		"an update that both have won": {history: history{set(0, 9, 0, 5), set(0, 9, 0, 6)}, refused: "no place"},
		"a stale read": {history: history{set(0, 1, 0, 5), read(2, 3, 0)},
			refused: "from 2s to 3s: register 1: read 0 — this has no place"},
		"a read from the future":        {history: history{read(0, 1, 5), set(2, 3, 0, 5)}, refused: "no place"},
		"a read of what nobody has set": {history: history{set(0, 1, 0, 5), read(2, 3, 9)}, refused: "read 9"},
		"a lost last update":            {history: history{set(0, 1, 0, 5), set(2, 3, 5, 6), read(9, 9, 5)}, refused: "read 5"},
		"refused although it fits":      {history: history{refused(0, 1, 0, 5, 0)}, refused: "no place"},
		"refused, and yet it took effect": {history: history{refused(0, 1, 7, 5, 0), read(2, 3, 5)},
			refused: "no place"},
		"back and forth": {history: history{set(0, 9, 0, 5), read(1, 2, 5), read(3, 4, 0)}, refused: "no place"},

		"unknown, and it took effect":             {history: history{unknown(0, 0, 5), read(3, 4, 5)}},
		"unknown, and it took effect late":        {history: history{unknown(0, 0, 5), read(3, 4, 0), read(60, 61, 5)}},
		"unknown, and it never took effect":       {history: history{unknown(0, 0, 5), read(3, 4, 0), set(60, 61, 0, 6)}},
		"unknown, and it took effect at the end":  {history: history{set(0, 1, 0, 5), unknown(2, 5, 6), read(9, 10, 5)}},
		"unknown, and others went on from it":     {history: history{unknown(0, 0, 5), set(3, 4, 5, 6), read(5, 6, 6)}},
		"unknown, one after the other, seen late": {history: history{unknown(0, 0, 5), unknown(3, 5, 6), read(9, 10, 6)}},
		"unknown, one after the other, unseen":    {history: history{unknown(0, 0, 5), unknown(3, 5, 6), read(9, 10, 0)}},
		"unknown, the first seen, not the second": {history: history{unknown(0, 0, 5), unknown(3, 5, 6), read(9, 10, 5)}},
		"unknown, and another won":                {history: history{unknown(0, 0, 5), set(1, 4, 0, 6), read(9, 10, 6)}},
		"unknown, seen before it was asked for":   {history: history{read(0, 1, 5), unknown(2, 0, 5)}, refused: "no place"},
		"unknown, seen, and gone again": {history: history{unknown(0, 0, 5), read(3, 4, 5), read(5, 6, 0)},
			refused: "no place"},
		"unknown, seen although it cannot have fitted": {history: history{set(0, 1, 0, 5), unknown(2, 0, 6), read(5, 6, 6)},
			refused: "unknown outcome"},
		"an unknown read": {history: history{on(1, 0, 1, input{kind: reading}, output{unknown: true}), read(2, 3, 0)}},

		"registers apart": {history: history{set(0, 1, 0, 5), on(2, 2, 3, input{kind: reading}, output{}), read(2, 3, 5)}},
		"one of two registers": {history: history{set(0, 1, 0, 5), read(2, 3, 5),
			on(2, 0, 1, input{kind: exchanging, value: 5}, output{applied: true}),
			on(2, 2, 3, input{kind: reading}, output{})}, refused: "register 2: read 0"},
		"a value that is set twice": {history: history{set(0, 1, 0, 5), unknown(2, 4, 5)}, refused: "5 is set twice"},
	} {
		t.Run(name, func(t *testing.T) {
			switch err := c.history.linearizable(time.Minute); {
			case c.refused == "" && err != nil:
				t.Error(err)
			case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)):
				t.Errorf("%v, want %q", err, c.refused)
			}
		})
	}
}

// TestHistoryWithMuchUnknown: hundreds of operations of unknown outcome do not keep the checker
// busy.
func TestHistoryWithMuchUnknown(t *testing.T) {
	var h history
	last := int64(0)
	for n := range 500 {
		at, value := 10*n, int64(1+2*n)
		h = append(h, unknown(at, last, value), unknown(at, last, value+1)) // one of two takes effect, if any
		if n%3 == 0 {
			last = value
		}
		h = append(h, read(at+5, at+6, last))
	}
	if err := h.linearizable(time.Minute); err != nil {
		t.Error(err)
	}
	if err := append(h, read(6000, 6001, 1)).linearizable(time.Minute); err == nil {
		t.Error("a stale read at its end is accepted")
	}
}

// TestHistoryThatIsNotJudgedInTime: what is unknown is no pass. The reads can be ordered in more
// ways than can ever be tried.
func TestHistoryThatIsNotJudgedInTime(t *testing.T) {
	h := history{read(5, 6, 7)}
	for range 200 {
		h = append(h, read(0, 9, 0))
	}
	if err := h.linearizable(time.Millisecond); err == nil || !strings.Contains(err.Error(), "unknown whether 201 ope") {
		t.Errorf("%v, want that it is unknown", err)
	}
}
