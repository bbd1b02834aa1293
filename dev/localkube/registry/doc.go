// Package registry is the cluster's image registry. It holds the images of every
// registry name at once, since the nodes pull all images from it, keeps them over
// a restart, and takes images from tar files. It builds on go-containerregistry.
package registry
