// Package status says what a cluster's status is, from the facts and the plan of a pass. It is
// pure; nothing in it decides anything, and nothing reads what it writes but people. It imports
// only core packages and API types.
package status
