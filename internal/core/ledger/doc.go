// Package ledger is what the operator must not forget about a cluster and what status may lose: the
// open steps and what is known of the ring. It is written to a ConfigMap by compare-and-swap. It
// imports API types alone.
package ledger
