// Package guard holds the predicates that must be true before something is done that cannot be taken back. Each is named by a sentence that is true when it
// passes; one that does not pass says which nodes are concerned, and why. It imports only core packages and API types.
package guard
