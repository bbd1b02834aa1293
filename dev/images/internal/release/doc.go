// Package release writes what is published of a version: images for several architectures, what is
// in them, the chart and the kubectl plugin. The same source and compiler give the same bytes. It
// imports the builder of the project's images.
package release
