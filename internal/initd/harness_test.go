package initd

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"helenus.io/helenus/internal/initapi"
	"helenus.io/helenus/internal/initclient"
)

// The test binary plays every part for real: helenus-init itself, the JVM, and what a JVM leaves
// behind.
const roleVariable = "HELENUS_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "":
		os.Exit(m.Run())
	case "init":
		playInit()
	case "jvm":
		playJVM()
	case "orphan":
		playOrphan()
	case "leftover":
		playLeftover()
	}
}

// playInit is cmd/helenus-init without its flags.
func playInit() {
	window, err := time.ParseDuration(os.Args[2])
	if err != nil {
		panic(err)
	}
	_ = os.Unsetenv(roleVariable)
	status, err := Run(Config{Dir: os.Args[1], Lock: os.Args[3], Version: "test", Window: window, Log: os.Stderr})
	if err != nil {
		fmt.Fprintf(os.Stderr, "helenus-init: %v\n", err)
	}
	os.Exit(status)
}

// playJVM says what it sees of its surroundings, then does what its arguments say.
func playJVM() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGQUIT)
	dir, _ := os.Getwd()
	session, _ := unix.Getsid(0)
	fmt.Printf("jvm dir=%s X=%q leader=%v\n", dir, os.Getenv("X"), session == os.Getpid())
	onTerm := 143
	switch {
	case len(os.Args) > 3 && os.Args[1] == "refuse":
		fmt.Fprint(os.Stderr, os.Args[3])
		os.Exit(number(os.Args[2]))
	case len(os.Args) > 2 && os.Args[1] == "exit":
		os.Exit(number(os.Args[2]))
	case len(os.Args) > 2 && os.Args[1] == "on-term":
		onTerm = number(os.Args[2])
	case len(os.Args) > 1 && os.Args[1] == "orphan":
		spawn("orphan")
	case len(os.Args) > 2 && os.Args[1] == "leftover":
		spawn("leftover", os.Args[2])
	}
	for s := range signals {
		if s == syscall.SIGQUIT {
			fmt.Println("jvm threads")
			continue
		}
		fmt.Println("jvm draining")
		os.Exit(onTerm)
	}
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

// spawn starts a process that nobody waits for, through a shell that ends at once. The process
// reads end of file on its standard input as soon as it has become a child of PID 1.
func spawn(role string, args ...string) {
	in, out, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", `"$0" "$@" <&3 &`, os.Args[0]}, args...)...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stdout = os.Stdout
	cmd.ExtraFiles = []*os.File{in}
	if err := cmd.Run(); err != nil {
		panic(err)
	}
	_ = out.Close()
}

// playOrphan ends once it is orphaned, naming its new parent.
func playOrphan() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	fmt.Printf("orphan parent=%d\n", os.Getppid())
}

// playLeftover holds a pipe open until it is killed: TERM does not end it.
func playLeftover() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
	pipe, err := os.OpenFile(os.Args[1], os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	_, _ = fmt.Fprintln(pipe, "alive")
	select {}
}

// container is an init that runs as a process of its own, in its own pid namespace where the system
// allows it.
type container struct {
	*initclient.Client
	t      *testing.T
	dir    string
	cmd    *exec.Cmd
	stdout *bufio.Scanner
	log    *bufio.Scanner
}

// startContainer runs an init whose image has a small configuration directory, and waits until it
// is ready.
func startContainer(t *testing.T, window time.Duration) *container {
	t.Helper()
	conf := filepath.Join(t.TempDir(), "etc")
	write(t, filepath.Join(conf, "cassandra.yaml"), "cluster_name: image\n")
	dir, err := os.MkdirTemp("", "initd") // short: a socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return startContainerIn(t, dir, conf, window)
}

func startContainerIn(t *testing.T, dir, conf string, window time.Duration) *container {
	t.Helper()
	return startContainerOn(t, filepath.Join(dir, "volume", "lock"), dir, conf, window, syscall.CLONE_NEWPID, 0)
}

// startContainerOn tries the flags of clone(2) in turn.
func startContainerOn(t *testing.T, lock, dir, conf string, window time.Duration, try ...uintptr) *container {
	t.Helper()
	c := &container{Client: initclient.NewClient(filepath.Join(dir, initapi.SocketName)), t: t, dir: dir}
	for _, flags := range try {
		c.cmd = exec.Command(os.Args[0], dir, window.String(), lock)
		c.cmd.Env = append(os.Environ(), roleVariable+"=init", "CASSANDRA_CONF="+conf, "CASSANDRA_HOME=/opt/here")
		c.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
		stdout, err := c.cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		stderr, err := c.cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err = c.cmd.Start(); err != nil {
			t.Logf("start with flags %#x: %v", flags, err)
			continue
		}
		c.stdout, c.log = bufio.NewScanner(stdout), bufio.NewScanner(stderr)
		break
	}
	if c.stdout == nil {
		t.Fatal("no init could be started")
	}
	t.Cleanup(func() { _ = c.cmd.Process.Kill(); c.end() })
	c.expectLog("ready")
	return c
}

// end waits for the container and returns its status.
func (c *container) end() int {
	if c.cmd.ProcessState == nil {
		_ = c.cmd.Wait()
	}
	return c.cmd.ProcessState.ExitCode()
}

func (c *container) expectLog(part string) {
	c.t.Helper()
	expect(c.t, c.log, part)
}

func (c *container) expectOutput(part string) string {
	c.t.Helper()
	return expect(c.t, c.stdout, part)
}

// expect reads lines until one contains part.
func expect(t *testing.T, lines *bufio.Scanner, part string) string {
	t.Helper()
	var seen []string
	for lines.Scan() {
		if seen = append(seen, lines.Text()); strings.Contains(lines.Text(), part) {
			return lines.Text()
		}
	}
	t.Fatalf("output ended without %q:\n%s", part, strings.Join(seen, "\n"))
	return ""
}

// jvm is the command that plays the JVM.
func jvm(args ...string) initclient.Command {
	return initclient.Command{Argv: append([]string{os.Args[0]}, args...),
		Env: []string{roleVariable + "=jvm", "X=it is x"}, Dir: "/"}
}

func (c *container) now() initapi.State {
	c.t.Helper()
	state, err := c.State(context.Background())
	if err != nil {
		c.t.Fatal(err)
	}
	return state
}

// run starts a JVM with the next free id and waits for its first line.
func (c *container) run(args ...string) initapi.State {
	c.t.Helper()
	seen := c.now()
	state, err := c.Start(context.Background(), seen, seen.LastStartID+1, jvm(args...))
	if err != nil {
		c.t.Fatal(err)
	}
	c.expectOutput("jvm dir=")
	return state
}

// until follows the state until it fits.
func (c *container) until(fits func(initapi.State) bool) initapi.State {
	c.t.Helper()
	state := c.now()
	for !fits(state) {
		var err error
		if state, err = c.WaitChange(context.Background(), state, initapi.MaxWait); err != nil {
			c.t.Fatal(err)
		}
	}
	return state
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
