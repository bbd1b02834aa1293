// Package makeroles makes the roles of a ring that is to ask for passwords, and keeps account of
// what a ring goes towards. It imports core packages and procedure.
package makeroles
