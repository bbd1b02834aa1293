package cassandra

import (
	"context"
	"crypto/x509"
	"net/netip"
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/initclient"
	"helenus.io/helenus/internal/simulate/process"
	"helenus.io/helenus/internal/simulate/timeline"
)

// StartOptions are what a JVM is started with.
type StartOptions struct {
	// Address of the pod.
	Address netip.Addr
	// Release of Cassandra in the image, such as 5.0.6.
	Release string
	Disk    *Disk
	// Files of the configuration directory by name. The JVM reads cassandra.yaml again when its
	// seeds are reloaded, so that the map is shared.
	Files config.Files
	// Command is how helenus-init is told to start it.
	Command initclient.Command
	// ClockOffset is how far the clock of its host is off.
	ClockOffset time.Duration
	// Fault makes the start end with this exit code and fatal line, before it has touched the disk.
	// Nil: none.
	Fault *Exit
	// Exited is called once, at its end.
	Exited func(Exit)
}

// Exit is how a JVM ended.
type Exit struct {
	Code int
	// Signal that ended it, SIGKILL; empty for an exit by itself.
	Signal string
	At     time.Time
	// FatalLine is what it wrote to its log about the reason; empty if it wrote none.
	FatalLine string
	// Words are what Java wrote to its standard error before Cassandra began; empty if it began.
	Words string
}

// Process is a JVM from its start to its end.
type Process struct {
	net     *Network
	line    *timeline.Timeline
	options StartOptions
	address netip.Addr
	release string
	disk    *Disk
	started time.Time

	settings settings
	// certificates that it shows, by their use.
	certificates map[v1alpha1.CertificateUse]*x509.Certificate
	// trusted are the keys of the authorities of nodes that it trusts.
	trusted  [][]byte
	gossip   gossiper
	metadata metadata
	// hears are the processes whose heartbeats come in.
	hears      map[*Process]bool
	generation int64
	hot        hotSettings

	mode       string
	answers    bool // Jolokia does
	beans      bool // Cassandra's are registered
	proxy      bool // that of StorageProxy too
	shadow     bool // in the shadow round
	joined     bool
	inited     bool
	complete   bool // setup() has ended
	native     bool
	draining   bool
	drained    bool
	failed     bool   // bootstrap
	logged     string // the last error in its log
	leaving    bool   // a decommission runs
	leaveFail  bool
	rebuilding bool
	assertion  *javaError // failed in the exchange that is answered now
	loadDue    bool       // its size is to be gossiped
	messaging  bool       // takes messages of other nodes
	schema     schema
	hostID     string
	bootTokens []ring.Token
	replaces   netip.Addr
	repairs    []*repair
	rewriting  []*rewriting
	rewritings int
	streams    []*stream
	removal    string

	frozen bool
	// hintsPaused: none is sent.
	hintsPaused bool
	// incremental repairs that users have begun and that are not over.
	incremental int
	busy        bool // while frozen
	frozenAt    time.Time
	normalAt    time.Time
	idle        time.Duration // without processor time
	ended       bool
	exit        Exit
	tasks       []*timeline.Task
	main        *timeline.Task // the start, as long as it takes
	waiting     []*timeline.Task
	version     int // counts changes of the view
	answer      answerCache
	placement   rings
}

// Start runs a JVM. It refuses nothing: what is wrong with the options ends the JVM as it ends a
// real one.
func (n *Network) Start(o StartOptions) *Process {
	p := &Process{
		net: n, line: n.line, options: o, address: o.Address.Unmap(), release: o.Release, disk: o.Disk,
		started:  n.line.Now(),
		metadata: newMetadata(), hears: map[*Process]bool{}, mode: modeStarting,
		gossip: gossiper{quarantined: map[netip.Addr]time.Time{}},

		certificates: map[v1alpha1.CertificateUse]*x509.Certificate{},
	}
	p.reloadCertificates()
	o.Disk.user = p
	if !slices.Contains(n.disks, o.Disk) {
		n.disks = append(n.disks, o.Disk)
	}
	n.running = append(n.running, p)
	if n.byAddress[p.address] == nil {
		n.byAddress[p.address] = p
	}
	p.main = p.spawn("start of Cassandra at "+p.address.String(), func() {
		if refused := p.begin(); refused != nil {
			p.giveUp(refused)
		}
		p.main = nil
	})
	return p
}

// now is the time by the clock of its host.
func (p *Process) now() time.Time { return p.line.Now().Add(p.options.ClockOffset) }

// Address is where it listens.
func (p *Process) Address() netip.Addr { return p.address }

// StartedAt is when it was started.
func (p *Process) StartedAt() time.Time { return p.started }

// Mode is its OperationMode.
func (p *Process) Mode() string { return p.mode }

// Datacenter that it is in.
func (p *Process) Datacenter() string { return p.settings.datacenter }

// Release of Cassandra that it is.
func (p *Process) Release() string { return p.release }

// HostID is its host id; empty before it knows it.
func (p *Process) HostID() string { return p.hostID }

// Ended says that it runs no more.
func (p *Process) Ended() bool { return p.ended }

// Exit is how it ended; the zero value while it runs.
func (p *Process) Exit() Exit { return p.exit }

// NormalFor is how long it has been NORMAL.
func (p *Process) NormalFor() time.Duration { return p.line.Now().Sub(p.normalAt) }

// NativeOpen says that it serves clients.
func (p *Process) NativeOpen() bool { return p.native && !p.ended && !p.frozen }

// CPUTime is the processor time that it has used.
func (p *Process) CPUTime() time.Duration {
	end := p.line.Now()
	if p.ended {
		end = p.exit.At
	}
	idle := p.idle
	if p.frozen && !p.busy {
		idle += end.Sub(p.frozenAt)
	}
	awake := end.Sub(p.started) - idle
	const starting = 5 * time.Second // of almost a whole processor
	return min(awake, starting)*9/10 + max(awake-starting, 0)/50
}

// Kill is SIGKILL.
func (p *Process) Kill() { p.end(Exit{Code: exitKilled, Signal: "SIGKILL"}) }

// Terminate is SIGTERM: the shutdown hook drains, and the JVM ends with code 143. While it is
// frozen nothing happens.
func (p *Process) Terminate() {
	if p.ended {
		return
	}
	p.spawn("shutdown hook", func() {
		p.await(context.Background(), func() bool { return !p.frozen }, -1)
		if p.main != nil {
			p.main.Kill()
		}
		if p.gossip.active || p.joined {
			p.drain()
		}
		p.sleep(p.net.within(300*time.Millisecond, 700*time.Millisecond))
		p.end(Exit{Code: exitTerminated})
	})
}

// Drain is nodetool drain, by somebody's hand.
func (p *Process) Drain() { p.spawn("nodetool drain", func() { _ = p.drain() }) }

// Freeze stops the JVM without ending it: it answers nobody. Busy says whether it uses its
// processors meanwhile, as one that does nothing but collect garbage.
func (p *Process) Freeze(busy bool) {
	if p.ended || p.frozen {
		return
	}
	p.frozen, p.busy, p.frozenAt = true, busy, p.line.Now()
	p.net.reconnect()
}

// Thaw lets a frozen JVM continue.
func (p *Process) Thaw() {
	if p.ended || !p.frozen {
		return
	}
	if !p.busy {
		p.idle += p.line.Now().Sub(p.frozenAt)
	}
	p.frozen = false
	p.net.reconnect()
	for _, e := range p.gossip.entries {
		// Convictions that fell due meanwhile begin again.
		if e.address != p.address && !e.flows && e.timer == nil {
			p.fallSilent(e)
		}
	}
	p.notify()
}

// Die has it end as after an error that it does not survive, such as one of the disk or of its
// memory.
func (p *Process) Die(code int, line string) { p.end(Exit{Code: code, FatalLine: line}) }

// giveUp ends it a point after the line in its log.
func (p *Process) giveUp(why *refusal) {
	p.sleep(p.net.within(500*time.Millisecond, p.net.options.DeathMax))
	if why.before {
		p.end(Exit{Code: why.code, Words: why.line})
		return
	}
	p.end(Exit{Code: why.code, FatalLine: why.line})
}

// end is the end of the process, from within or without.
func (p *Process) end(exit Exit) {
	if p.ended {
		return
	}
	exit.At = p.line.Now()
	if exit.FatalLine == "" {
		exit.FatalLine = p.logged
	}
	p.ended, p.exit, p.native = true, exit, false
	if p.disk.user == p {
		p.disk.user = nil
	}
	for _, e := range p.gossip.entries {
		p.line.Cancel(e.timer)
	}
	p.gossip.active = false
	p.abortStreams()
	p.net.remove(p)
	p.notify()
	if p.options.Exited != nil {
		p.line.After(0, "exit", func() { p.options.Exited(exit) })
	}
	tasks := p.tasks
	p.tasks = nil
	var self *timeline.Task
	for _, t := range tasks {
		if t == p.line.Running() {
			self = t
			continue
		}
		t.Kill()
	}
	if self != nil {
		self.Kill()
	}
}

// spawn runs something inside the JVM: it ends with it.
func (p *Process) spawn(name string, f func()) *timeline.Task {
	var task *timeline.Task
	task = p.line.Go(name, f, func() {
		p.tasks = slices.DeleteFunc(p.tasks, func(t *timeline.Task) bool { return t == task })
		p.notify()
	})
	p.tasks = append(p.tasks, task)
	return task
}

// sleep lets time pass inside the JVM: more of it on a slow host, and as long as it takes while it
// is frozen.
func (p *Process) sleep(d time.Duration) {
	if factor, slow := p.net.slow[p.address]; slow {
		d = time.Duration(float64(d) * factor)
	}
	p.line.Sleep(d)
	p.await(context.Background(), func() bool { return !p.frozen }, -1)
}

// await parks the calling task until a condition holds, which is looked at whenever something
// happens to the JVM, or the context or the limit ends; a negative limit does not. It says whether
// the condition held. Outside of a task it does not wait.
func (p *Process) await(ctx context.Context, condition func() bool, limit time.Duration) bool {
	deadline := p.line.Now().Add(limit)
	for !condition() {
		task := p.line.Running()
		if task == nil || ctx.Err() != nil || limit >= 0 && !p.line.Now().Before(deadline) {
			return false
		}
		left := limit
		if limit >= 0 {
			left = deadline.Sub(p.line.Now())
		}
		p.waitForNotice(ctx, task, left)
	}
	return true
}

// waitForNotice parks a task until something happens to the JVM, or the context or the limit ends.
// The task may be killed there.
func (p *Process) waitForNotice(ctx context.Context, task *timeline.Task, limit time.Duration) {
	p.waiting = append(p.waiting, task)
	defer func() { p.waiting = slices.DeleteFunc(p.waiting, func(t *timeline.Task) bool { return t == task }) }()
	_ = process.Sleep(ctx, p.line, limit)
}

// notify has those who wait look again.
func (p *Process) notify() {
	for _, t := range slices.Clone(p.waiting) {
		t.Wake()
	}
}

// changed says that the view is another one.
func (p *Process) changed() { p.version++ }
