// Package replace has a node take the place of a member whose disk or host is lost, with the tokens
// of that. It imports core packages, procedure and ticket.
package replace
