// Package node is the agent's brain: from everything that is known about one node (its record, the
// journal, its disk, its process, its JVM's answer, the words of its peers, the clock) it decides
// the one action that comes next, what to report, and when to look again. Everything is pure; it
// imports the API types, core/facts, core/config, core/ring, its own package operation and the
// types of internal/initapi, and nothing that has an effect.
package node
