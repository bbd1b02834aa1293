package main

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/inspectapi"
	"helenus.io/helenus/internal/operator"
)

// garbagePercent is how much garbage there may be for what is in use before it is collected, unless
// GOGC says otherwise. Most of an operator's memory is what it knows of its clusters, and while
// they are idle it makes little garbage: to collect it early costs next to nothing.
const garbagePercent = 15

// version of this build, set by the linker.
var version = "dev"

func main() {
	if err := run(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "helenus:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("helenus", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), "helenus runs Apache Cassandra on Kubernetes: it watches CassandraClusters and "+
			"makes them so.\n\nUsage:\n  helenus --agent-image IMAGE [flags]\n\nFlags:\n")
		flags.PrintDefaults()
	}
	agentImage := flags.String("agent-image", "", "`image` of the agent that runs beside each Cassandra (required)")
	repository := flags.String("image-repository", "docker.io/library/cassandra",
		"`repository` of Cassandra images; a cluster without spec.image uses <repository>:<spec.version>")
	namespaces := flags.String("namespaces", "", "comma-separated `names` of the namespaces to watch; all if empty")
	elect := flags.Bool("leader-elect", true, "make one replica the leader; the others wait")
	leaseNamespace := flags.String("lease-namespace", "", "`namespace` of the leader's Lease; that of the pod if empty")
	metrics := flags.String("metrics-address", ":8080", "`address` for Prometheus metrics, 0 for none")
	health := flags.String("health-address", ":8081", "`address` for /healthz and /readyz, 0 for none")
	inspect := flags.String("inspect-address", fmt.Sprintf("127.0.0.1:%d", inspectapi.DefaultPort),
		"`address` at which kubectl helenus plan is answered, 0 for none; it is reached by port forwarding")
	console := operator.Console{}
	flags.StringVar(&console.Address, "console-address", "0",
		"`address` at which browsers reach the console through a Service, such as :8083, 0 for none")
	hosts := flags.String("console-hosts", "", "comma-separated `names` under which browsers reach the console")
	flags.StringVar(&console.CertificateDir, "console-certificate", "",
		"`directory` with the tls.crt and tls.key that the console shows; without it, browsers cannot verify the one it makes")
	flags.StringVar(&console.PodAddress, "pod-address", "", "`address` of this pod, which other replicas reach")
	verbose := flags.Bool("verbose", false, "log also what a pass waits for")
	showVersion := flags.Bool("version", false, "print the version and exit")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *showVersion {
		fmt.Println(version)
		return nil
	}
	if *agentImage == "" {
		return errors.New("--agent-image is not set: name the image of the agent, such as that of the release you " +
			"installed")
	}
	level := slog.LevelInfo
	if *verbose {
		level = slog.LevelDebug
	}
	log := logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	ctrl.SetLogger(log)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	console.Hosts = split(*hosts)
	return operator.Run(ctrl.SetupSignalHandler(), config, operator.Options{
		Install: facts.Install{Version: version, ImageRepository: *repository, AgentImage: *agentImage,
			Namespace: namespace()},
		Namespaces:     split(*namespaces),
		LeaderElection: *elect,
		LeaseNamespace: *leaseNamespace,
		MetricsAddress: *metrics,
		HealthAddress:  *health,
		InspectAddress: *inspect,
		Console:        console,
		Log:            log,
	})
}

// namespace of the pod that this runs in; empty if it runs in none.
func namespace() string {
	name, err := os.ReadFile(layout.TokenDir + "/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}

func split(list string) []string {
	var out []string
	for _, name := range strings.Split(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	return out
}
