// Package preflight looks, before anything is started, for what would make a
// cluster fail later and less clearly. Each problem it reports says what to do.
// It also installs the Debian packages that a node needs.
package preflight
