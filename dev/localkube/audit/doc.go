// Package audit reads the API server's audit log and counts requests by who made
// them, what they did and to what. It imports only the standard library.
package audit
