// Package library is a fixture: it is no command.
package library
