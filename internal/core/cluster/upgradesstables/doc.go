// Package upgradesstables rewrites SSTables once the format that a node writes has changed. It
// imports core packages and procedure.
package upgradesstables
