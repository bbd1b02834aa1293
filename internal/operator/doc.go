// Package operator wires the loop into controller-runtime: which events wake which cluster, one
// pass at a time for each, observe → decide → act → status. Nothing else knows the manager. It
// imports everything of the operator and nothing imports it but the command.
package operator
