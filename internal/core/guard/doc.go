// Package guard holds the predicates that must be true before something is done that cannot be
// undone. Each has a reason that names the problem it looks for; what it finds says which nodes are
// concerned, and why. It imports only core packages and API types.
package guard
