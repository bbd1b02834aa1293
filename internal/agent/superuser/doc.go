// Package superuser makes an SSTable of system_auth.roles with one row: the role helenus_root, a
// superuser that may log in, with a password hash of the caller's, written at a time of the
// caller's. At 1 µs after the epoch, as the template has it, any row of that name that was ever
// written by CQL wins over it.
//
// The table has had one schema and one id since Cassandra 4.0. The format nb is written by 4.0 and
// 4.1, and read by all since. Without compression the hash is in Data.db as it is, and nothing else
// depends on it but two checksums.
//
// The files in template were written by the jars of Cassandra 4.1.10 on its Java 11, with the
// --add-exports and --add-opens of its jvm11-server.options:
//
//	CQLSSTableWriter w = CQLSSTableWriter.builder().inDirectory(args[0])
//	    .forTable("CREATE TABLE system_auth.roles (role text PRIMARY KEY, " +
//	        "is_superuser boolean, can_login boolean, salted_hash text, member_of set<text>) " +
//	        "WITH compression = {'enabled': false}")
//	    .using("INSERT INTO system_auth.roles (role, is_superuser, can_login, salted_hash) " +
//	        "VALUES (?, ?, ?, ?) USING TIMESTAMP 1")
//	    .build();
//	w.addRow("helenus_root", true, true, "$2a$04$" + "x".repeat(53));
//	w.close();
//
// Imports: standard library.
package superuser
