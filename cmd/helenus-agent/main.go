// Command helenus-agent is the native sidecar of a Cassandra pod. Flags and wiring only; what it
// decides is in internal/core/node, what it does in internal/agent.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"helenus.io/helenus/internal/agent"
)

// version is set by the build.
var version = "development"

const usage = `helenus-agent runs beside Cassandra in every pod that Helenus makes, as a native sidecar.

It puts helenus-init and the Java agents into the volume that it shares with the Cassandra
container, follows the CassandraNode of its pod, decides when
the JVM starts and stops, renders its configuration, serves the probes of the pod and answers
questions of the operator and of other agents. It is not
meant to be started by hand: everything it needs comes from the pod, whose layout is in internal/core/layout.

Required environment: POD_NAME, POD_NAMESPACE, POD_UID, POD_IP, HELENUS_POD_TEMPLATE, HELENUS_CLUSTER,
HELENUS_CLUSTER_UID, HELENUS_VOLUMES (name=path, separated by commas, data first).
Optional: CASSANDRA_MEMORY_LIMIT (bytes), TERMINATION_GRACE_PERIOD_SECONDS (default 300).

On SIGTERM it ends and leaves Cassandra as it is: the next agent goes on.

Flags:
`

func main() {
	options := agent.Defaults()
	flag.StringVar(&options.Root, "root", options.Root,
		"directory that all paths of the pod are below; for running it outside of a pod")
	flag.StringVar(&options.InstallDir, "install-dir", options.InstallDir,
		"directory with helenus-init and the Java agents, not below the root")
	flag.StringVar(&options.ListenAddress, "listen-address", options.ListenAddress,
		"address of the facts and health servers; empty for all")
	flag.StringVar(&options.APIServer, "api-server", options.APIServer,
		"URL of the API server; empty for the one of the pod")
	showVersion := flag.Bool("version", false, "print the version and exit")
	flag.Usage = func() { _, _ = fmt.Fprint(flag.CommandLine.Output(), usage); flag.PrintDefaults() }
	flag.Parse()
	if *showVersion {
		fmt.Println("helenus-agent " + version)
		return
	}
	err := errors.New("takes no arguments, see --help")
	if flag.NArg() == 0 {
		options.Version = version
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
		err = agent.Run(ctx, options)
		stop()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "helenus-agent: %v\n", err)
		os.Exit(1)
	}
}
