// Package initapi is the protocol of helenus-init on its unix socket. Imports: standard library
// only.
package initapi
