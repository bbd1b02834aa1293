// Package api tests the API of Helenus against a real API server: each rule of the schemas, each
// validation of the admission policies, and the roles, with what they accept and what they refuse,
// and with which words. It has tests alone, in a module of their own because they build Kubernetes;
// they import the API, the clients of Kubernetes and dev/localkube.
package api
