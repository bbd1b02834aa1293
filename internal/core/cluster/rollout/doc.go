// Package rollout brings the members of a ring to what the spec describes: the first node alone,
// then rack by rack in waves. It imports core packages and procedure.
package rollout
