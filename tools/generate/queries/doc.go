// Package queries evaluates every expression of the dashboards and alerts on pages of metrics, by
// the engine of Prometheus. Tests alone import it.
package queries
