// Package layer writes file trees as container image layers whose bytes depend
// on their content alone: sorted entries, no times, numeric owners, one
// compression. It may import the standard library only.
package layer
