// Command generate remakes everything below config, and the API reference, that follows from the
// types of the API: deep copies, the custom resource definitions, the one manifest that users
// apply, and docs/guide/api-reference.md. It completes what controller-gen makes: the settings that
// Helenus owns become part of the schema, every list and text gets a bound, and no definition may
// grow past what a client can apply. It imports the API, Kubernetes API types and the standard
// library.
package main
