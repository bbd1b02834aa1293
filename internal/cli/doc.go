// Package cli holds the commands of the kubectl plugin: what they are called, what they ask, and
// how they print it. Status is read from the API objects alone; the plan comes from the operator,
// through a forwarded port, and is never computed here. It imports client-go, controller-runtime's
// client and what the operator says, and decides nothing.
package cli
