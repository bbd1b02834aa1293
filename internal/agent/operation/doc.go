// Package operation carries out the operations that a record asks for, one file for each type. What
// holds one back before it begins is in internal/core/node/operation.
package operation
