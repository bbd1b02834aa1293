// Package disk says what a data volume holds: whose data, whether Cassandra counted itself a member
// when it wrote it, and what else lies there. It reads through fs.FS and changes nothing; what
// follows from its report is decided in core/node.
//
// The word of the disk is the column "bootstrapped" of Cassandra's own table system.local. It is
// read as Cassandra reads it: from all SSTables of the table, decompressed, cell by cell, the
// newest timestamp winning. Neither the order of generations nor where compression cuts a word
// matters then, and the host id, cluster name and tokens come with it. SSTables of a transaction
// that did not commit are left out, as Cassandra deletes them at its next start.
//
// Commit logs are counted, not read. Cassandra flushes system.local as part of writing
// "bootstrapped" and the tokens, so after a kill at most the last such write is missing from the
// SSTables, and with it the step that Cassandra would have taken after the flush: the report is
// then one state behind and never ahead. The journal, written before the agent lets Cassandra take
// such a step, is therefore the primary record, and this report its check.
//
// Imports: standard library and the LZ4 decoder.
package disk
