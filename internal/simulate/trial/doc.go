// Package trial is one run of a scenario in a world, with at most one fault in it, and the
// judgement on it: the invariants at every write, the end against the spec and against that of the
// run without a fault, silence afterwards, and no write of a client lost. A trial is named by one
// line and runs the same whenever it is run.
package trial
