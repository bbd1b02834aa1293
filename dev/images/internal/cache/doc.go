// Package cache knows where downloads, layers and images lie on this machine,
// and keeps downloads under the hash of their content. It may import the
// standard library only.
package cache
