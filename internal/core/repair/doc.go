// Package repair decides which ranges of which tables are repaired next, so that every replica has
// a deletion before any of them forgets it, and keeps what is proven to be repaired. It is pure; it
// imports core/ring and the API.
package repair
