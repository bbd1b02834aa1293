// Package words puts numbers and lists into messages for people. It imports the standard library
// alone.
package words
