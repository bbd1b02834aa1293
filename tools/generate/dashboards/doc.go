// Package dashboards has the dashboards of Helenus, and writes them for Grafana. It imports of the
// product only the names of its metrics.
package dashboards
