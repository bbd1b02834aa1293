// Package live starts a real API server for the tests of this module. It may import the local
// Kubernetes, and nothing of the product.
package live
