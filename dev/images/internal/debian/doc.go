// Package debian resolves, downloads and unpacks Debian packages with apt and
// dpkg, without touching the packages of this machine: apt works on a private
// state directory in the cache. It may import lock, cache and layer.
package debian
