// Command images builds the container images that the local cluster and the
// tests run: Apache Cassandra in the layout of the official image, and the
// project's own. It needs no Docker; everything comes from Maven Central,
// Debian and the Python package index through their ordinary clients.
package main
