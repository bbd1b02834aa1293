// Package lock holds the lock file of an image: every file that is downloaded
// for it, by name, version and hash. It may import the standard library only.
package lock
