// Package initclient is the agent's side of helenus-init: the client of its socket, and the copy of
// its binary into the pod's volume. Imports: standard library and initapi.
package initclient
