// Package verify reads a backup in its store, and finds what is missing there or has another
// content. It knows the format of backups, and imports facts, the store and sweep.
package verify
