// Package archive keeps the commit log of a member in a store of backups: hard links to its
// segments, so that they stay until they are sent, and what has grown in them. It imports the
// format and the stores of backups, never the rest of the agent.
package archive
