// Package assassinate removes the stale endpoints of failed joins from gossip. It imports core
// packages and procedure.
package assassinate
