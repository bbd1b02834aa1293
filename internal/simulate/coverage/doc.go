// Package coverage changes every property of a cluster's spec, one at a time, on a formed ring:
// sets it, changes it, takes it away, gives it a value that is not allowed, and sets it back. Which
// properties there are, and what values they take, comes from the schema. After each step the
// cluster is what a fresh one of that spec would be, or refuses in words and is what it was. It
// imports the world, the trials' measures and the packages of the API server's schemas.
package coverage
