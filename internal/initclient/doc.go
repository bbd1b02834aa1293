// Package initclient is the agent's side of helenus-init: the client of its socket. Imports:
// standard library and initapi.
package initclient
