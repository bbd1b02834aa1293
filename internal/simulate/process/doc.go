// Package process runs a program of the product inside a timeline: what would be goroutines are
// tasks, what would be waiting is virtual time, and killing the program ends all of it wherever it
// is. It imports timeline and the product's threads.
package process
