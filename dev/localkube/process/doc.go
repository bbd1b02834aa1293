// Package process starts programs that outlive the command that started them:
// each in a session of its own, with a log file and a file that holds its pid
// and start time, so that it is later stopped by that pid and no other. It
// imports only the standard library and golang.org/x/sys.
package process
