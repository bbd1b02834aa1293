// Package image puts layers together as an image and writes it as a file that
// container tools load. It may import go-containerregistry.
package image
