// Package operation carries out the operations that a record asks for, by a table with a row for
// each type. What holds one back before it begins is in internal/core/node/operation.
package operation
