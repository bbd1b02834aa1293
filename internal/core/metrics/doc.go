// Package metrics names every metric that the operator and the agents export. It imports nothing.
package metrics
