package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/disk"
	"helenus.io/helenus/internal/agent/execute"
	"helenus.io/helenus/internal/agent/journal"
	"helenus.io/helenus/internal/agent/operation"
	"helenus.io/helenus/internal/agent/pod"
	"helenus.io/helenus/internal/agent/record"
	"helenus.io/helenus/internal/agent/serve"
	"helenus.io/helenus/internal/agentapi"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/metrics"
	"helenus.io/helenus/internal/initapi"
	"helenus.io/helenus/internal/initclient"
	"helenus.io/helenus/internal/pki"
	"helenus.io/helenus/internal/threads"
)

// Run is an agent until ctx ends, or its record asks it to. It returns nil then, and an error if it
// could not begin or a server failed.
func Run(ctx context.Context, o Options) error {
	logger := log.New(os.Stderr, "", log.LstdFlags|log.Lmicroseconds|log.LUTC|log.Lmsgprefix)
	e, err := readEnvironment(o)
	if err != nil {
		return fmt.Errorf("read environment of the pod: %w", err)
	}
	e.self.StartedAt = threads.Goroutines{}.Now()
	logger.Printf("helenus-agent %s for node %s of cluster %s in pod %s", o.Version, e.self.Node, e.cluster,
		e.self.PodUID)

	h := &health{now: time.Now}
	servers, err := listen(o)
	if err != nil {
		return err
	}
	a, line, err := assemble(o, e, logger)
	if err != nil {
		return err
	}
	h.agent = a
	if err := install(o); err != nil {
		return fmt.Errorf("hand over to the Cassandra container: %w", err)
	}
	h.started.Store(true)
	certificates := pki.NewFiles(o.path(layout.CertificateDir))

	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var all sync.WaitGroup
	serveUntil := func(name string, run func() error) {
		all.Go(func() {
			if err := run(); err != nil && ctx.Err() == nil {
				stop(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	serveUntil("probes", func() error { return serve.Probes(ctx, servers.health, h) })
	serveUntil("metrics", func() error {
		jvm := url.URL{Scheme: "http", Host: net.JoinHostPort(layout.Loopback, strconv.Itoa(layout.JVMMetricsPort)),
			Path: layout.MetricsPath}
		return serve.Metrics(ctx, servers.metrics, h, jvm)
	})
	serveUntil("facts", func() error { return serve.Facts(ctx, servers.facts, a, certificates.Material, time.Now) })
	all.Go(func() { line.Run(ctx) })
	all.Go(func() { rest(ctx, logger) })
	a.Run(ctx)
	stop(nil)
	all.Wait()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

type listeners struct{ health, metrics, facts net.Listener }

func listen(o Options) (l listeners, err error) {
	for into, port := range map[*net.Listener]int{&l.health: layout.HealthPort, &l.metrics: layout.MetricsPort,
		&l.facts: layout.FactsPort} {
		//nolint:noctx // it is open as long as the agent
		if *into, err = net.Listen("tcp", net.JoinHostPort(o.ListenAddress, strconv.Itoa(port))); err != nil {
			return l, fmt.Errorf("listen: %w", err)
		}
	}
	return l, nil
}

func install(o Options) error {
	return pod.Install(pod.Installation{
		Init: filepath.Join(o.InstallDir, "helenus-init"), InitTarget: o.path(layout.InitBinary),
		Lib: o.InstallDir, Library: o.path(layout.LibraryDir),
	})
}

// uploads is how many files are put into a store of backups at a time: each takes parts of 8 MiB.
const uploads = 2

// assemble makes the agent and its line to the API server out of the pod.
func assemble(o Options, e environment, logger *log.Logger) (*execute.Agent, *record.Line, error) {
	hasCommitlog := slices.ContainsFunc(e.volumes,
		func(v pod.Volume) bool { return v.Name == v1alpha1.VolumeCommitlog })
	logVolume := layout.DataDir
	if hasCommitlog {
		logVolume = layout.CommitlogDir
	}
	data, err := journal.OpenVolume(o.path(layout.DataDir))
	if err != nil {
		return nil, nil, err
	}
	password, err := pod.Password(o.path(layout.PrivateDir))
	if err != nil {
		return nil, nil, err
	}
	address, err := netip.ParseAddr(e.self.Address)
	if err != nil {
		return nil, nil, fmt.Errorf("address of the pod: %w", err)
	}
	jvm, err := pod.NewJVM(layout.JolokiaPort, password, netip.AddrPortFrom(address, layout.NativePort), nil)
	if err != nil {
		return nil, nil, err
	}
	certificates := pki.NewFiles(o.path(layout.CertificateDir))
	own := pod.NewCertificates(o.path(layout.CassandraCertificateDir), address, threads.Goroutines{}.Now)
	var line *record.Line
	a := execute.New(execute.Host{
		Threads: threads.Goroutines{},
		Init:    initclient.NewClient(o.path(filepath.Join(layout.SharedDir, initapi.SocketName))),
		Journal: pod.NewJournal(data),
		Disk:    pod.NewDisk(e.volumes, threads.Goroutines{}.Now),
		Files: pod.NewFiles(o.Root, pod.DefaultPaths(hasCommitlog), password,
			pod.Ports{Jolokia: layout.JolokiaPort, Metrics: layout.JVMMetricsPort}),
		JVM:   jvm,
		Peers: pod.NewPeers(e.self.ClusterUID, certificates.Material, time.Now, agentapi.FactsAddress),
		Logf:  logger.Printf,

		Certificates: own,
		Store: func(ctx context.Context, spec *v1alpha1.BackupStoreSpec) (store.Store, error) {
			secret, err := store.Secrets(spec, func(name string) (map[string][]byte, error) {
				return line.Secret(ctx, name)
			})
			if err != nil {
				return nil, err
			}
			return store.Open(*spec, secret)
		},
		Uploads:    uploads,
		LogVolume:  o.path(logVolume),
		DataVolume: o.path(layout.DataDir),
		Staging: func(tag string) (operation.Staging, error) {
			return disk.OpenStaging(o.path(layout.DataDir), tag)
		},
	}, e.self, execute.Options{MemoryLimit: e.memoryLimit, Random: rand.Float64})

	if line, err = e.line(o, a, logger); err != nil {
		return nil, nil, err
	}
	a.Connect(line)
	jvm.OperatorLogin = func(ctx context.Context) (cassandra.Login, error) {
		return operation.OperatorLogin(ctx, line.Secret, e.cluster)
	}
	jvm.TLS = func() (*tls.Config, error) {
		if record, _ := line.Record(); record == nil || record.Spec.Configuration.Encryption == nil ||
			record.Spec.Configuration.Encryption.Clients != v1alpha1.EncryptionRequired {
			return nil, nil
		}
		return own.Dial()
	}
	return a, line, nil
}

func (e *environment) line(o Options, a *execute.Agent, logger *log.Logger) (*record.Line, error) {
	config := record.Config{URL: o.APIServer, Directory: o.path(layout.TokenDir)}
	if config.URL == "" {
		var err error
		if config, err = record.InCluster(config.Directory); err != nil {
			return nil, err
		}
	}
	api, err := record.New(config)
	if err != nil {
		return nil, err
	}
	return record.NewLine(api, record.Options{
		Namespace: e.namespace, Node: e.self.Node, Cluster: e.cluster,
		Now: time.Now, Random: rand.Float64, Changed: a.Wake, Logf: logger.Printf,
	}), nil
}

// health is what probes and Prometheus see of an agent.
type health struct {
	agent   *execute.Agent
	started atomic.Bool
	now     func() time.Time
}

func (h *health) Started() bool         { return h.started.Load() }
func (h *health) Live() (bool, string)  { return h.agent.Live() }
func (h *health) Ready() (bool, string) { return h.agent.Ready() }

func (h *health) Choice() v1alpha1.Metrics { return h.agent.Figures().Choice }

// phases that are shown as metrics.
var phases = []v1alpha1.NodePhase{
	v1alpha1.PhaseWaiting, v1alpha1.PhaseStarting, v1alpha1.PhaseJoining, v1alpha1.PhaseNormal, v1alpha1.PhaseLeaving,
	v1alpha1.PhaseLeft,
	v1alpha1.PhaseStopping, v1alpha1.PhaseStopped, v1alpha1.PhaseDeferred, v1alpha1.PhaseDataLost,
	v1alpha1.PhaseDownTooLong,
	v1alpha1.PhaseAddressTaken, v1alpha1.PhaseFailed,
}

func (h *health) Metrics() []metrics.Sample {
	f, now := h.agent.Figures(), h.now()
	out := serve.PhaseMetrics(f.Phase, phases)
	ready := metrics.Sample{Family: metrics.AgentReady}
	if f.Ready {
		ready.Value = 1
	}
	out = append(out, ready, metrics.Sample{Family: metrics.AgentRestarts, Value: float64(f.Restarts)})
	for kind, row := range f.Failures {
		out = append(out, metrics.Sample{Family: metrics.AgentFailing, Values: []string{string(kind)},
			Value: float64(row)})
	}
	for _, c := range f.Certificates {
		use := []string{string(c.Use)}
		out = append(out,
			metrics.Sample{Family: metrics.AgentCertificateStart, Values: use, Value: float64(c.NotBefore.Unix())},
			metrics.Sample{Family: metrics.AgentCertificateEnd, Values: use, Value: float64(c.NotAfter.Unix())})
	}
	if !f.LogCovered.IsZero() {
		out = append(out, metrics.Sample{Family: metrics.AgentLogCovered, Value: float64(f.LogCovered.Unix())})
	}
	out = append(out, serve.Age(metrics.AgentAPISilence, f.APIHeard, now)...)
	return append(out, serve.Age(metrics.AgentJVMSilence, f.JVMHeard, now)...)
}
