// Package assess weighs, once per pass, what record, agent, disk, ledger and the views of the ring
// say of each node, and puts it into a few words that every step reads. It is the only place that
// does so. It imports core/facts, core/ledger, core/render and API types, and changes nothing.
package assess
