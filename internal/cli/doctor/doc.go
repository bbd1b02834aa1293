// Package doctor looks for what is wrong with an installation and its clusters, with the rights of
// a user: what it sees are facts, and what it thinks of them are findings, made by a pure function.
// It stores nothing: what it tries to write are dry runs. It imports the API, core, the manifest of
// the installation and controller-runtime's client.
package doctor
