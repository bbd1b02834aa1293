// Package pki makes and checks the certificates by which operator and agents know each other: one
// authority per cluster, one leaf per node and one for the operator, with the identity in a URI. It
// imports the standard library and the API types only; time is always an argument. Randomness is
// that of the standard library, which since Go 1.26 takes no reader of the caller for keys and
// signatures.
package pki
