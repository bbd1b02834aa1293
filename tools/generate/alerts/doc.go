// Package alerts has the alerts of Helenus, and writes them for Prometheus, for the chart and for
// the guide. It imports of the product only the names of its metrics.
package alerts
