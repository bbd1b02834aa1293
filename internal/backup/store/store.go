// Package store reads and writes the objects of backups: in a bucket or, for tests and tools, in a
// directory, encrypted or not. Of contents it knows which keys are locked. It keeps no state, and
// imports api and libraries alone.
package store

import (
	"context"
	"errors"
	"io"
	"time"
)

// ErrExists means that an object of that key is there; it was not touched. ErrNotFound means that
// there is none.
var (
	ErrExists   = errors.New("object exists")
	ErrNotFound = errors.New("object not found")
)

// Object is one of a list.
type Object struct {
	Key  string
	Size int64
	// Written is when, by the clock of the store.
	Written time.Time
}

// Store holds objects by key. Keys are relative to the prefix of the store, with slashes. An object
// is written once and never changed. All methods may be called at the same time.
type Store interface {
	// Put writes an object of so many bytes, whole or not at all. The error is ErrExists if there
	// is one of that key.
	Put(ctx context.Context, key string, content io.Reader, size int64) error
	// Get reads an object. The caller closes it.
	Get(ctx context.Context, key string) (io.ReadCloser, error)
	// Size is that of an object, in bytes.
	Size(ctx context.Context, key string) (int64, error)
	// List calls a function for each object whose key begins with a prefix, in the order of keys,
	// until it returns an error.
	List(ctx context.Context, prefix string, each func(Object) error) error
	// Directories are the names that keys begin with, up to their first slash.
	Directories(ctx context.Context) ([]string, error)
	// Delete removes an object. One that is not there is no error.
	Delete(ctx context.Context, key string) error
}
