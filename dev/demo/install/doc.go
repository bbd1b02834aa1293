// Package install installs Helenus into a Kubernetes cluster: the one manifest that users apply
// too, with the images that are to run, by server-side apply. It imports packages reach and follow.
package install
