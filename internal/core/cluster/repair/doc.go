// Package repair repairs nodes whose data must be, one after the other, when a person asks for it.
// It imports core packages and procedure.
package repair
