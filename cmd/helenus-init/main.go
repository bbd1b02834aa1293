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

It copies the image's configuration directory (CASSANDRA_CONF, default /etc/cassandra) into the volume that it shares
with the helenus agent, listens on <dir>/init.sock, and starts, signals and reaps the JVM as the agent asks. The agent
may crash or be replaced: the JVM runs on. On SIGTERM it lets the agent stop Cassandra in order; if none does, it sends
SIGTERM to Cassandra itself. It ends with the status of the JVM.

Flags:
`

func main() {
	dir := flag.String("dir", "/helenus", "volume shared with the agent")
	window := flag.Duration("window", initapi.DefaultWindow, "how long after SIGTERM the agent may take over the stop")
	showVersion := flag.Bool("version", false, "print the version and the protocol version, and exit")
	flag.Usage = func() { _, _ = fmt.Fprint(flag.CommandLine.Output(), usage); flag.PrintDefaults() }
	flag.Parse()
	if *showVersion {
		fmt.Printf("helenus-init %s, protocol %d\n", version, initapi.ProtocolVersion)
		return
	}
	status, err := 0, errors.New("takes no arguments, see --help")
	if flag.NArg() == 0 {
		status, err = initd.Run(initd.Config{Dir: *dir, Version: version, Window: *window, Log: os.Stderr})
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "helenus-init: %v\n", err)
		os.Exit(1)
	}
	os.Exit(status)
}
