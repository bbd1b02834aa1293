// Package own builds the project's own images: static Go programs and Java
// agents on an empty base. It may import cache, image, layer, lock and maven.
package own
