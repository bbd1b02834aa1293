package scene

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// kind of an operation on a register.
type kind string

const (
	reading    kind = "read"
	exchanging kind = "compare and set"
)

// input is what was asked of a register. A register is 0 until it is set, and no value is set
// twice.
type input struct {
	kind     kind
	register int
	// expected is what the register must be for it to become value.
	expected, value int64
}

// output is what was answered.
type output struct {
	// unknown says that nothing was, or an error: it has taken effect at any time after the call,
	// or never.
	unknown bool
	// applied says that the register has become value.
	applied bool
	// is what the register was: read, or found to be other than expected.
	is int64
}

// history of the operations on registers, each with the times of its call and its return.
type history []porcupine.Operation

func operation(client int, in input, out output, call, back time.Duration) porcupine.Operation {
	o := porcupine.Operation{ClientId: client, Input: in, Output: out, Call: int64(call), Return: int64(back)}
	if out.unknown {
		o.Return = math.MaxInt64
	}
	return o
}

// register is the model of one: what it is, and what becomes of it.
var register = porcupine.Model{
	Partition: partition,
	Init:      func() any { return int64(0) },
	Step: func(state, in, out any) (bool, any) {
		i, o := in.(input), out.(output)
		switch {
		case i.kind == reading:
			return state == o.is, state
		case o.applied || o.unknown: // one without effect has been left out
			return state == i.expected, i.value
		default:
			return state == o.is && o.is != i.expected, state
		}
	},
	DescribeOperation: func(in, out any) string { return describe(in.(input), out.(output)) },
}

func describe(i input, o output) string {
	what := fmt.Sprintf("register %d: ", i.register)
	switch {
	case i.kind == reading:
		return what + fmt.Sprintf("read %d", o.is)
	case o.unknown:
		return what + fmt.Sprintf("%d → %d, unknown outcome", i.expected, i.value)
	case o.applied:
		return what + fmt.Sprintf("%d → %d", i.expected, i.value)
	default:
		return what + fmt.Sprintf("%d → %d refused, it is %d", i.expected, i.value, o.is)
	}
}

// partition divides a history by registers.
func partition(all []porcupine.Operation) [][]porcupine.Operation {
	var out [][]porcupine.Operation
	at := map[int]int{}
	for _, o := range all {
		n := o.Input.(input).register
		if _, known := at[n]; !known {
			at[n] = len(out)
			out = append(out, nil)
		}
		out[at[n]] = append(out[at[n]], o)
	}
	return out
}

// settled leaves out what says nothing: reads of unknown outcome, and exchanges of unknown outcome
// whose value nobody has seen. Each value is set by one operation alone, so that such an exchange
// had no effect before all others: if it had one it was seen by whoever came next. One whose value
// was seen has had its effect. So no operation is left that may have had an effect or not, of which
// a few are enough to keep the checker busy for ever.
func (h history) settled() (history, error) {
	type value struct {
		register int
		is       int64
	}
	setBy, seen := map[value]input{}, []value{}
	for _, o := range h {
		i, answer := o.Input.(input), o.Output.(output)
		if i.kind == exchanging {
			v := value{i.register, i.value}
			if _, twice := setBy[v]; twice || i.value == 0 {
				return nil, fmt.Errorf("%d is set twice, or is what a register is at first: %s", i.value,
					describe(i, answer))
			}
			setBy[v] = i
		}
		switch {
		case answer.unknown:
		case answer.applied:
			seen = append(seen, value{i.register, i.expected}, value{i.register, i.value})
		default:
			seen = append(seen, value{i.register, answer.is})
		}
	}
	had := map[value]bool{}
	for len(seen) > 0 {
		v := seen[len(seen)-1]
		seen = seen[:len(seen)-1]
		if had[v] {
			continue
		}
		had[v] = true
		if by, found := setBy[v]; found {
			seen = append(seen, value{v.register, by.expected})
		}
	}
	return slices.DeleteFunc(slices.Clone(h), func(o porcupine.Operation) bool {
		i := o.Input.(input)
		return o.Output.(output).unknown && (i.kind == reading || !had[value{i.register, i.value}])
	}), nil
}

// linearizable fails if there is no order of all operations in which each of them has its effect
// between its call and its return and is answered accordingly, or if that cannot be told in time.
func (h history) linearizable(within time.Duration) error {
	known, err := h.settled()
	if err != nil {
		return err
	}
	switch result := porcupine.CheckOperationsTimeout(register, known, within); result {
	case porcupine.Ok:
		return nil
	case porcupine.Illegal:
		return fmt.Errorf("%d operations on registers are not linearizable: %s", len(h), known.broken(within))
	default:
		return fmt.Errorf("it is unknown whether %d operations on registers are linearizable: the check has not ended "+
			"within %s", len(h), within)
	}
}

// around is how many operations of a history are shown on each side of that which does not fit.
const around = 10

// broken shows the first operation that has no place in the longest order that there is, with those
// that returned before and after it.
func (h history) broken(within time.Duration) string {
	for _, of := range partition(h) {
		result, info := porcupine.CheckOperationsVerbose(register, of, within)
		if result != porcupine.Illegal {
			continue
		}
		var longest []porcupine.Operation
		for _, order := range info.PartialLinearizationsOperations()[0] {
			if len(order) > len(longest) {
				longest = order
			}
		}
		slices.SortStableFunc(of, func(a, b porcupine.Operation) int { return int(min(1, max(-1, a.Return-b.Return))) })
		at := slices.IndexFunc(of, func(o porcupine.Operation) bool { return !slices.Contains(longest, o) })
		var b strings.Builder
		for n := max(0, at-around); n < min(len(of), at+around); n++ {
			o := of[n]
			fmt.Fprintf(&b, "\n  client %d, from %s", o.ClientId, time.Duration(o.Call))
			if !o.Output.(output).unknown {
				fmt.Fprintf(&b, " to %s", time.Duration(o.Return))
			}
			b.WriteString(": " + describe(o.Input.(input), o.Output.(output)))
			if n == at {
				b.WriteString(" — this has no place")
			}
		}
		return b.String()
	}
	return "the register was not found again"
}
