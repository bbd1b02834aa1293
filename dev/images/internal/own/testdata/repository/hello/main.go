// Command hello is a fixture: the smallest program.
package main

var version = "unset"

func main() { println(version) }
