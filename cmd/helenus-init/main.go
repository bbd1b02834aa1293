// Command helenus-init is PID 1 of the Cassandra container: it starts, signals and reaps the JVM
// for the agent. Flags and wiring only; what it does is in internal/initd.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"helenus.io/helenus/internal/initapi"
	"helenus.io/helenus/internal/initd"
)

// version is set by the build.
var version = "development"

const usage = `helenus-init is the first process of a Cassandra container that Helenus runs.

It starts, signals and reaps the JVM as the helenus agent asks on <dir>/init.sock, and ends with the status of the JVM.

Flags:
`

func main() {
	dir := flag.String("dir", "/helenus", "volume shared with the agent")
	lock := flag.String("lock", initapi.LockPath, "file on the data volume that one init at a time holds a lock of")
	window := flag.Duration("window", initapi.DefaultWindow, "how long after SIGTERM the agent may take over the stop")
	flag.Usage = func() { _, _ = fmt.Fprint(flag.CommandLine.Output(), usage); flag.PrintDefaults() }
	flag.Parse()
	status, err := 0, errors.New("takes no arguments, see --help")
	if flag.NArg() == 0 {
		status, err = initd.Run(initd.Config{Dir: *dir, Lock: *lock, Version: version, Window: *window, Log: os.Stderr})
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "helenus-init: %v\n", err)
		os.Exit(1)
	}
	os.Exit(status)
}
