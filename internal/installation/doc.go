// Package installation compares what the API server has of an installation of Helenus with the
// manifest of this release, asks for the rights of the operator, and has the operator prove both
// for itself. What it tries to write are dry runs. It imports the API, the manifest and
// controller-runtime's client.
package installation
