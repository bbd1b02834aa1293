// Package check starts an image by itself, without a container runtime: its
// files as a read-only root, in namespaces of its own, as an unprivileged user.
// It may import go-containerregistry and the CQL driver.
package check
