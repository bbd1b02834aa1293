// Package plan holds what a pass decides: a Plan with its writes, in order, and why. What acts on a
// plan, shows it or tests it imports this package and not core/cluster, which makes it. It imports
// core/ledger and API types.
package plan
