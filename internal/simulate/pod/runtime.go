package pod

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/execute"
	"helenus.io/helenus/internal/agent/operation"
	agentpod "helenus.io/helenus/internal/agent/pod"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/node"
	"helenus.io/helenus/internal/initapi"
	"helenus.io/helenus/internal/initclient"
	"helenus.io/helenus/internal/simulate/cassandra"
	"helenus.io/helenus/internal/simulate/kube"
	"helenus.io/helenus/internal/simulate/process"
	"helenus.io/helenus/internal/simulate/timeline"
	"helenus.io/helenus/test/memdisk"
)

var errUnreachable = errors.New("connection refused")

// Runtime makes Cassandra pods on hosts. It is kube.Runtime.
type Runtime struct {
	Line    *timeline.Timeline
	Network *cassandra.Network
	// Bucket is where all stores of backups are.
	Bucket *Bucket
	// Client writes as a user; Observer reads for the watches, which no fault touches.
	Client   func(user string) client.Client
	Observer client.Reader
	// Base are the configuration files of an image by release: 5.0.6.
	Base func(release string) config.Files
	// APIReachable says that a host reaches the API server, Reachable that one host reaches
	// another.
	APIReachable func(host string) bool
	Reachable    func(from, to string) bool
	// Delay is what it takes longer to reach a host, or to get something done on it. Blind says
	// that a pod's agent is told nothing by its watches.
	Delay func(host string) time.Duration
	Blind func(pod types.UID) bool
	// Clock is how far the clock of a host is off for agents that start from now on.
	Clock func(host string) time.Duration
	// Probed is called when a probe of a pod may have another result.
	Probed func(uid types.UID)
	// Hook, where there is one, is called around each durable step of an agent, and may kill the
	// agent there.
	Hook func(s *Sandbox, step memdisk.Step, done bool) error
	// Start, where there is one, is called before each start of a JVM; a fault makes the start
	// fail.
	Start func(s *Sandbox, command initclient.Command) *cassandra.Exit
	// Host, where there is one, returns what an agent touches in place of what it would.
	Host func(s *Sandbox, h execute.Host) execute.Host
	// Lockless inits start JVMs without the lock of the data volume.
	Lockless bool
	// Logf takes the lines of the agents' logs.
	Logf func(format string, args ...any)

	sandboxes []*Sandbox
	count     int
}

// Sandbox is a Cassandra pod on a host.
type Sandbox struct {
	rt      *Runtime
	pod     *corev1.Pod
	host    string
	address netip.Addr
	volumes map[string]*kube.Volume
	cluster string
	uid     types.UID
	files   *files
	process *process.Process
	agent   *execute.Agent
	line    *line
	asking  map[int]context.CancelFunc
	asked   int
	init    *initContainer
	jvm     *cassandra.Process
	// mounted are the Secrets with certificates of Cassandra as the kubelet last read them.
	mounted map[v1alpha1.CertificateUse]map[string][]byte
}

// Sandbox makes one.
func (r *Runtime) Sandbox(pod *corev1.Pod, host string, address netip.Addr,
	volumes map[string]*kube.Volume) kube.Sandbox {
	s := &Sandbox{
		rt: r, pod: pod, host: host, address: address, volumes: volumes, asking: map[int]context.CancelFunc{},
		cluster: environment(pod, layout.EnvClusterName), uid: types.UID(environment(pod, layout.EnvClusterUID)),
		files: &files{}, mounted: map[v1alpha1.CertificateUse]map[string][]byte{},
	}
	if _, mounted := volumes[v1alpha1.VolumeData]; !mounted {
		volumes[v1alpha1.VolumeData] = &kube.Volume{Name: "emptyDir", Host: host}
	}
	r.sandboxes = append(r.sandboxes, s)
	return s
}

func environment(pod *corev1.Pod, name string) string {
	for _, c := range pod.Spec.InitContainers {
		for _, e := range c.Env {
			if c.Name == layout.AgentContainer && e.Name == name {
				return e.Value
			}
		}
	}
	return ""
}

// Name of the node.
func (s *Sandbox) Name() string { return s.pod.Name }

// ClusterUID is the uid of its cluster.
func (s *Sandbox) ClusterUID() types.UID { return s.uid }

// Datacenter of the node.
func (s *Sandbox) Datacenter() string { return s.pod.Labels[v1alpha1.LabelDatacenter] }

// Host it is on.
func (s *Sandbox) Host() string { return s.host }

// Address of the pod.
func (s *Sandbox) Address() netip.Addr { return s.address }

// PodUID is the pod's.
func (s *Sandbox) PodUID() types.UID { return s.pod.UID }

// JVM is Cassandra; nil while it does not run.
func (s *Sandbox) JVM() *cassandra.Process { return s.jvm }

// Ending says that the container of Cassandra is to end.
func (s *Sandbox) Ending() bool { return s.init != nil && s.init.state.Stopping != nil }

// Agent is the real agent; nil while it does not run.
func (s *Sandbox) Agent() *execute.Agent { return s.agent }

func (s *Sandbox) content(volume string) *Content { return ContentOf(s.volumes[volume]) }

// Content of a volume by its name.
func (s *Sandbox) Content(volume string) *Content { return s.content(volume) }

// user is who the agent is to the API server.
func (s *Sandbox) user() string {
	return "system:serviceaccount:" + s.pod.Namespace + ":" + s.pod.Spec.ServiceAccountName
}

// Sandboxes in which something runs, by name: who is the first does not depend on which was made
// first.
func (r *Runtime) Sandboxes() []*Sandbox {
	all := slices.DeleteFunc(slices.Clone(r.sandboxes),
		func(s *Sandbox) bool { return s.process == nil && s.init == nil })
	slices.SortStableFunc(all, func(a, b *Sandbox) int { return strings.Compare(a.Name(), b.Name()) })
	return all
}

// Addresses of the pods on a host.
func (r *Runtime) Addresses(host string) []netip.Addr {
	var out []netip.Addr
	for _, s := range r.Sandboxes() {
		if s.host == host {
			out = append(out, s.address)
		}
	}
	return out
}

// at is the pod that answers at an address.
func (r *Runtime) at(address string) *Sandbox {
	for _, s := range r.sandboxes {
		if s.process != nil && s.address.String() == address {
			return s
		}
	}
	return nil
}

// Start starts a container.
func (s *Sandbox) Start(container, image string, exited func(int)) {
	if container == layout.AgentContainer {
		s.startAgent(exited)
		return
	}
	tag, _, _ := strings.Cut(image, "@")
	release := tag[strings.LastIndex(tag, ":")+1:]
	s.files.base = s.rt.Base(release)
	s.rt.count++
	java := "17.0.19"
	if strings.HasPrefix(release, "4.") {
		java = "11.0.28"
	}
	volume := s.content(v1alpha1.VolumeData)
	if s.rt.Lockless {
		volume = nil
	}
	s.init = newInit(s.rt.Line, fmt.Sprintf("i%d", s.rt.count), initapi.Image{
		ConfigDir: "/etc/cassandra", Base: fmt.Sprintf("/helenus/base/i%d", s.rt.count),
		CassandraHome: "/opt/cassandra", JavaRelease: fmt.Sprintf("JAVA_VERSION=%q", java),
		Jars: []string{"/opt/cassandra/lib/apache-cassandra-" + release + ".jar"},
	}, volume, func(command initclient.Command, ended func(cassandra.Exit)) (jvm, error) {
		return s.startJVM(release, command, ended), nil
	},
		func(code int) {
			s.init = nil
			exited(code)
		})
}

// running is a JVM in the words of helenus-init.
type running struct{ *cassandra.Process }

func (r running) CPU() time.Duration { return r.CPUTime() }

func (s *Sandbox) startJVM(release string, command initclient.Command, ended func(cassandra.Exit)) jvm {
	var fault *cassandra.Exit
	if s.rt.Start != nil {
		fault = s.rt.Start(s, command)
	}
	s.jvm = s.rt.Network.Start(cassandra.StartOptions{
		Address: s.address, Release: release, Disk: s.content(v1alpha1.VolumeData).Data, Files: s.files.rendered,
		Command: command, Fault: fault,
		Exited: func(e cassandra.Exit) {
			s.jvm, s.files.last = nil, e
			ended(e)
		},
	})
	return running{s.jvm}
}

// Refused says that a JVM which is started now ends before it does anything: Java does not take its
// options, or Cassandra not the disk.
func (s *Sandbox) Refused() bool {
	return cassandra.UnknownOption(s.files.rendered) != "" || s.content(v1alpha1.VolumeData).Data.Unfit()
}

// Stop asks a container to end.
func (s *Sandbox) Stop(container string) {
	if container == layout.AgentContainer {
		s.Kill(container)
		return
	}
	if s.init != nil {
		s.init.terminate()
	}
}

// Kill ends a container.
func (s *Sandbox) Kill(container string) {
	if container == layout.AgentContainer {
		if s.process != nil {
			s.process.Kill()
		}
		return
	}
	if s.init != nil {
		s.init.kill()
	}
}

// Started says whether the agent has put helenus-init in its place.
func (s *Sandbox) Started(container string) bool {
	return container != layout.AgentContainer || s.agent != nil
}

// Ready asks the agent.
func (s *Sandbox) Ready(string) bool {
	if s.agent == nil {
		return false
	}
	ready, _ := s.agent.Ready()
	return ready
}

// startAgent runs the real agent until it ends or its process is killed.
func (s *Sandbox) startAgent(exited func(int)) {
	volume := s.content(v1alpha1.VolumeData)
	volume.Files.SetHook(func(step memdisk.Step, done bool) error {
		switch {
		case !done && volume.Data.Full() && (step.Op == memdisk.OpCreate || step.Op == memdisk.OpWrite):
			return syscall.ENOSPC
		case !done && volume.Failing:
			return syscall.EROFS
		case s.rt.Hook != nil:
			return s.rt.Hook(s, step, done)
		default:
			return nil
		}
	})
	l, code := &line{s: s}, 137
	s.process = process.Start(s.rt.Line, "agent "+s.pod.Name, func(ctx context.Context, p *process.Process) {
		p.Wait(ctx, s.rt.Line.Between(20*time.Millisecond, 200*time.Millisecond), nil)
		s.line, s.agent = l, s.newAgent(p, l)
		l.agent = s.agent
		s.rt.Probed(s.pod.UID)
		s.Reconnect()
		s.agent.Run(ctx)
		code = 0
		p.Kill()
	})
	s.process.StepClock(s.rt.Clock(s.host))
	s.process.OnEnd(func() {
		s.process, s.agent, s.line = nil, nil, nil
		for i := range s.asked {
			if end := s.asking[i]; end != nil {
				end()
			}
		}
		s.rt.Probed(s.pod.UID)
		exited(code)
	})
	s.process.OnPark(func() {
		if s.agent != nil {
			s.rt.Probed(s.pod.UID)
		}
	})
}

func (s *Sandbox) newAgent(p *process.Process, record execute.Record) *execute.Agent {
	var names []string
	for entry := range strings.SplitSeq(environment(s.pod, layout.EnvVolumes), ",") {
		name, _, _ := strings.Cut(entry, "=")
		names = append(names, name)
	}
	grace := time.Duration(0)
	if g := s.pod.Spec.TerminationGracePeriodSeconds; g != nil {
		grace = time.Duration(*g) * time.Second
	}
	host := execute.Host{
		Threads: p,
		Init:    connection{s.rt.Line, func() *initContainer { return s.init }},
		Journal: agentpod.NewJournal(s.content(v1alpha1.VolumeData).Files),
		Disk:    agentpod.NewDiskOf(names, func(name string) agentpod.Store { return volume{s, name} }, s.rt.Line.Now),
		Files:   s.files,
		JVM:     newJVM(s),
		Record:  record,
		Peers:   peers{s},
		Logf:    s.rt.Logf,

		Certificates: certificates{s},
		Staging: func(tag string) (operation.Staging, error) {
			return staging{s.content(v1alpha1.VolumeData).Data, path.Join("restore", tag)}, nil
		},
		Store: func(ctx context.Context, spec *v1alpha1.BackupStoreSpec) (store.Store, error) {
			_, err := store.Secrets(spec, func(name string) (map[string][]byte, error) {
				return record.Secret(ctx, name)
			})
			return s.rt.Bucket, err
		},
	}
	if s.rt.Host != nil {
		host = s.rt.Host(s, host)
	}
	return execute.New(host, node.Self{
		ClusterUID: s.uid, Node: s.pod.Name, PodUID: s.pod.UID,
		PodTemplate: s.pod.Annotations[v1alpha1.AnnotationTemplateHash], Address: s.address.String(),
		AgentVersion: "simulated", FactsPort: layout.FactsPort,
		StartedAt: p.Now(), GracePeriod: grace,
	}, execute.Options{MemoryLimit: s.MemoryLimit(), Random: s.rt.Line.Dice().Float64})
}

// Reconnect has the agent's watches start over, as they do when the API server comes into reach.
func (s *Sandbox) Reconnect() {
	l := s.line
	if l == nil || !s.rt.APIReachable(s.host) {
		return
	}
	s.rt.Line.After(s.rt.Line.Between(5*time.Millisecond, 100*time.Millisecond), "list of agent "+s.pod.Name, func() {
		if s.line == l && s.rt.APIReachable(s.host) {
			l.list()
		}
	})
}

// Changed tells the agents whom a change of a record or of seeds concerns.
func (r *Runtime) Changed(object client.Object, deleted bool) {
	for _, s := range r.sandboxes {
		l := s.line
		if l == nil || object.GetNamespace() != s.pod.Namespace || !r.APIReachable(s.host) {
			continue
		}
		switch o := object.(type) {
		case *v1alpha1.CassandraNode:
			if o.Name == s.pod.Name {
				s.deliver(l, func() {
					if deleted {
						l.see(nil)
					} else if l.record == nil || l.record.UID != o.UID || version(o) > version(l.record) {
						l.see(o)
					}
				})
			}
		case *corev1.ConfigMap:
			if o.Name == v1alpha1.SeedsName(s.cluster) && !deleted {
				s.deliver(l, func() { l.seeSeeds(o) })
			}
		}
	}
}

// watchDelay is what news takes from the API server to an agent. It is always the same, so that
// news comes in order.
const watchDelay = 20 * time.Millisecond

func (s *Sandbox) deliver(l *line, tell func()) {
	s.rt.Line.After(watchDelay, "watch of agent "+s.pod.Name, func() {
		if s.line == l && s.rt.APIReachable(s.host) && !s.rt.Blind(s.pod.UID) {
			tell()
		}
	})
}

// Remove lets the pod go.
func (s *Sandbox) Remove() {
	s.rt.sandboxes = slices.DeleteFunc(s.rt.sandboxes, func(o *Sandbox) bool { return o == s })
}

// RoundTrip is the JVM's Jolokia as the agent reaches it.
func (s *Sandbox) RoundTrip(r *http.Request) (*http.Response, error) {
	if d := s.rt.Delay(s.host); d > 0 {
		if err := process.Sleep(r.Context(), s.rt.Line, d); err != nil {
			return nil, err
		}
	}
	if s.jvm == nil {
		return nil, errUnreachable
	}
	return s.jvm.RoundTrip(r)
}
