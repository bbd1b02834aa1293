// Package sweep deletes in a store what is not needed any more. It knows the format of backups, and
// imports the store and that alone.
package sweep
