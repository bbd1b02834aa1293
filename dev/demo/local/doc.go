// Package local makes the Kubernetes of this machine ready for Helenus: it runs the commands
// localkube and images, which are modules of their own, and says by which references the images are
// to be pulled. It imports no Kubernetes code.
package local
