// Package config renders the configuration of a Cassandra node on the files of its own image,
// checks what the user may set, and says which changes need a restart of the JVM.
//
// Everything here is pure: bytes of files and typed inputs go in, bytes of files come out; reading
// and writing them is the agent's. It imports the standard library's pure parts, the API types, the
// tables of settings beside it and a YAML library (go.yaml.in/yaml/v3, the one maintained by the
// YAML organisation and already part of the Kubernetes libraries).
package config
