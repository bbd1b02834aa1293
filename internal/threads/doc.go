// Package threads is how code that waits is run: as goroutines against the clock, or, in a
// simulation, as tasks of a virtual timeline. Agent and operator wait and start things beside
// themselves through it alone, so that the same code runs in both. It imports the standard library
// alone.
package threads
