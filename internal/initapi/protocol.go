package initapi

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// On each connection init sends a Hello, the client one Request, init one Reply, each one line of
// JSON; then init closes. Unknown fields are ignored.
//
// Version 2 has the lock of the data volume. An agent works with an init of an older version, and
// stops its JVM in order, but has it start none: see OldestVersion. With an init of a newer version
// an agent does not talk. It says so in the status of its node and starts nothing; what runs there
// runs on, and init stops it by itself when the pod is deleted.
const (
	ProtocolVersion = 2
	OldestVersion   = 1           // knows no lock: its state is never locked
	SocketName      = "init.sock" // in the shared volume
	// on the data volume; the directory is the journal's
	LockPath        = "/var/lib/cassandra/.helenus/lock"
	MaxRequestBytes = 512 << 10        // one request line
	MaxWait         = time.Minute      // longest wait of OpWait
	MaxStopLease    = 30 * time.Second // longest lease of OpTakeStop; a longer stop renews it
	DefaultWindow   = 2 * time.Second  // how long after SIGTERM an agent may first take the stop
	IOTimeout       = 5 * time.Second  // how long init waits for a request to arrive, and for a reply to be taken
)

// Op names what a request asks for.
type Op string

// The requests of the protocol.
const (
	OpState Op = "state" // the state now
	// the state as soon as Seq is above After or the incarnation another, or after TimeoutMillis
	OpWait   Op = "wait"
	OpStart  Op = "start"  // start the JVM: takes effect at most once per StartID
	OpSignal Op = "signal" // signal the running JVM, named by StartID and PID
	// after SIGTERM: this agent stops Cassandra in order, for LeaseMillis from now; renewable
	OpTakeStop Op = "take-stop"
)

// Hello is the first line of every connection.
type Hello struct {
	Protocol int    `json:"protocol"`
	Version  string `json:"version"` // release of helenus-init, for people
}

// Request is one line from the client. Start, signal and take-stop carry the incarnation they were
// decided for.
type Request struct {
	Op            Op       `json:"op"`
	Incarnation   string   `json:"incarnation,omitempty"`
	After         uint64   `json:"after,omitempty"`
	TimeoutMillis int64    `json:"timeoutMillis,omitempty"` // 0 or above MaxWait: MaxWait
	StartID       uint64   `json:"startID,omitempty"`       // at least 1; each new start has a higher one than the last
	Argv          []string `json:"argv,omitempty"`          // Argv[0] is an absolute path
	Env           []string `json:"env,omitempty"`           // NAME=value, over init's own environment
	Dir           string   `json:"dir,omitempty"`           // absolute; default /
	PID           int      `json:"pid,omitempty"`
	Signal        string   `json:"signal,omitempty"` // TERM, QUIT (thread dump): to the JVM; KILL: to its process group
	LeaseMillis   int64    `json:"leaseMillis,omitempty"`
}

// Timeout of an OpWait.
func (r Request) Timeout() time.Duration {
	if ms := r.TimeoutMillis; ms > 0 && ms < MaxWait.Milliseconds() {
		return time.Duration(ms) * time.Millisecond
	}
	return MaxWait
}

// Reply is one line from init. State is always there unless the request could not be read.
type Reply struct {
	Error *Error `json:"error,omitempty"`
	State *State `json:"state,omitempty"`
}

// Code says why a request had no effect.
type Code string

// The reasons for a refusal.
const (
	CodeInvalid     Code = "invalid"     // malformed request
	CodeIncarnation Code = "incarnation" // the container was restarted since: look again
	CodeRunning     Code = "running"     // another start runs
	CodeStale       Code = "stale"       // the start id is below the last one used
	CodeStopping    Code = "stopping"    // no start after SIGTERM
	CodeUnlocked    Code = "unlocked"    // init does not hold the lock of the data volume yet
	CodeNotRunning  Code = "not-running" // that start, with that pid, does not run
	CodeNotStopping Code = "not-stopping"
	CodeTooLate     Code = "too-late" // init stops Cassandra itself already
)

// Error is a refusal. It satisfies error, so that the client returns it as it came.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

// Refuse makes a refusal.
func Refuse(c Code, format string, args ...any) *Error {
	return &Error{Code: c, Message: fmt.Sprintf(format, args...)}
}

func (e *Error) Error() string { return "helenus-init: " + e.Message }

// State is everything init knows: an agent needs no memory of its own.
type State struct {
	Incarnation string    `json:"incarnation"` // another one for each start of the container
	Seq         uint64    `json:"seq"`         // rises with every change within one incarnation
	StartedAt   time.Time `json:"startedAt"`
	Image       Image     `json:"image"`
	LastStartID uint64    `json:"lastStartID"` // highest id used, 0 for none
	Process     *Process  `json:"process,omitempty"`
	Exits       []Exit    `json:"exits,omitempty"` // oldest first, the last 16
	Stopping    *Stopping `json:"stopping,omitempty"`
	CPUNanos    int64     `json:"cpuNanos,omitempty"` // processor time of the running JVM; no change of it raises Seq
	// why init does not hold the lock of the data volume yet; empty once it does, and then for good
	Unlocked string `json:"unlocked,omitempty"`
}

// Process is the running JVM. PID is as seen inside the container.
type Process struct {
	StartID   uint64    `json:"startID"`
	PID       int       `json:"pid"`
	StartedAt time.Time `json:"startedAt"`
}

// Exit is an ended start. Code is the exit code, 128 + number for an end by signal, 127 if the
// program could not be run.
type Exit struct {
	Process
	EndedAt time.Time `json:"endedAt"`
	Code    int       `json:"code"`
	Signal  string    `json:"signal,omitempty"` // SIGKILL, … if a signal ended it
	Error   string    `json:"error,omitempty"`  // why it could not be run
	// the end of what it wrote to its standard error, at most 512 bytes: there alone Java says what
	// it does before Cassandra begins to log
	Words string `json:"words,omitempty"`
}

// Stopping is set from SIGTERM on. Until Deadline init leaves the stop to an agent; then, with
// Alone set, it acts itself.
type Stopping struct {
	Since    time.Time `json:"since"`
	Deadline time.Time `json:"deadline"`
	Taken    bool      `json:"taken"`
	Alone    bool      `json:"alone"`
}

// Image is what the container's image says of itself.
type Image struct {
	ConfigDir string `json:"configDir"` // the image's own configuration directory
	// its copy in the shared volume; gone after the next start
	Base          string            `json:"base"`
	CassandraHome string            `json:"cassandraHome"`         // CASSANDRA_HOME, default /opt/cassandra
	Jars          []string          `json:"jars,omitempty"`        // Cassandra's own, whose names have its release
	JavaRelease   string            `json:"javaRelease,omitempty"` // the Java runtime's release file
	Environment   map[string]string `json:"environment"`           // variables that bin/cassandra and its scripts read
}

// Release of Cassandra in the image, as its jar is named in the project's archives; empty if there
// is no such jar, or more than one.
func (i Image) Release() string {
	var out string
	for _, jar := range i.Jars {
		release := strings.TrimSuffix(strings.TrimPrefix(path.Base(jar), "apache-cassandra-"), ".jar")
		if release == "" || release[0] < '0' || release[0] > '9' {
			continue
		}
		if out != "" {
			return ""
		}
		out = release
	}
	return out
}

// What bin/cassandra and the scripts it sources read from the environment.
var imageVariables = []string{"CASSANDRA_", "JAVA_", "JVM_", "LOCAL_JMX", "MAX_HEAP_SIZE", "HEAP_NEWSIZE", "LANG",
	"LC_", "LD_", "MALLOC_", "PATH"}

// EnvironmentOfImage is the part of a container's environment that Cassandra reads.
func EnvironmentOfImage(environ []string) map[string]string {
	out := map[string]string{}
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		if slices.ContainsFunc(imageVariables, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			out[name] = value
		}
	}
	return out
}
