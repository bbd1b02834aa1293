// Package operation is what the agent's brain knows of the operations that a record can ask for,
// by a table with a row for each type: what it conflicts with, when it may not begin, and which
// keyspaces it works on. How they are carried out is in internal/agent/operation.
package operation
