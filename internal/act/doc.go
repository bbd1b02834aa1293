// Package act is the only writer of the operator: it carries out a plan's writes, in order, each
// with the preconditions the plan gave it, and stops at the first that fails. It decides nothing
// and never imports observe.
package act
