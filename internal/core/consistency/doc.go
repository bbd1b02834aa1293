// Package consistency remembers what this process wrote, until its own view shows it: no pass may
// rest on a view that is older than our own writes. It is pure and imports only Kubernetes types.
package consistency
