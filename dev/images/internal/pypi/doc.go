// Package pypi resolves and downloads Python wheels with pip and unpacks them.
// It may import lock, cache and layer.
package pypi
