package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"
)

// ContainerCommand is the name under which the program calls itself to become
// the first process of a container.
const ContainerCommand = "container"

// uid and gid the image's processes run as: the user cassandra.
const uid, gid = 999, 999

// confDirectory is where the configuration is put, apart from the image's own:
// the image must be happy with that.
const confDirectory = "/run/conf"

// container is a running image.
type container struct {
	process *exec.Cmd
	env     []string
	done    chan error
}

// plan is what the first process is told.
type plan struct {
	Root    string
	Command []string
	Env     []string
}

// start runs the image unpacked at root with extra environment until ctx ends; its
// output goes to output.
func start(ctx context.Context, root string, config v1.Config, extra []string, output *os.File) (*container, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start container: %w", err)
	}
	env := append(append([]string{}, config.Env...), extra...)
	text, err := json.Marshal(plan{Root: root, Command: append(append([]string{}, config.Entrypoint...), config.Cmd...),
		Env: env})
	if err != nil {
		return nil, fmt.Errorf("start container: %w", err)
	}
	process := exec.CommandContext(ctx, self, ContainerCommand, string(text))
	process.Stdout, process.Stderr = output, output
	process.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS |
			syscall.CLONE_NEWIPC,
		// The container does not outlive the check.
		Pdeathsig: syscall.SIGKILL,
	}
	// The signal follows the death of the thread, not of the process.
	started := make(chan error)
	c := &container{process: process, env: env, done: make(chan error, 1)}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := process.Start()
		started <- err
		if err == nil {
			c.done <- process.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start container: %w", err)
	}
	return c, nil
}

// Become turns this process into the first one of a container, as text says: it
// does not return unless something fails.
func Become(text string) error {
	var p plan
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return fmt.Errorf("read plan: %w", err)
	}
	if err := mountAll(p.Root); err != nil {
		return err
	}
	if err := loopbackUp(); err != nil {
		return err
	}
	// A name that the image's hosts file knows: Cassandra looks its own up.
	if err := unix.Sethostname([]byte("localhost")); err != nil {
		return fmt.Errorf("set host name: %w", err)
	}
	if err := syscall.Chroot(p.Root); err != nil {
		return fmt.Errorf("change root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := dropPrivileges(); err != nil {
		return err
	}
	program, err := lookPath(p.Command[0], p.Env)
	if err != nil {
		return err
	}
	return syscall.Exec(program, p.Command, p.Env)
}

// mountAll makes root read-only, with what a container runtime mounts and
// writable directories where a pod has volumes.
func mountAll(root string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount(root, root, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount root: %w", err)
	}
	if err := unix.Mount("", root, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("make root read-only: %w", err)
	}
	if err := unix.Mount("proc", filepath.Join(root, "proc"), "proc", 0, ""); err != nil {
		return fmt.Errorf("mount proc: %w", err)
	}
	for _, directory := range []string{"dev", "run", "tmp", "var/lib/cassandra", "var/log/cassandra"} {
		if err := unix.Mount("tmpfs", filepath.Join(root, directory), "tmpfs", 0, "mode=1777"); err != nil {
			return fmt.Errorf("mount %s: %w", directory, err)
		}
	}
	for device, minor := range map[string]uint32{"null": 3, "zero": 5, "random": 8, "urandom": 9} {
		file := filepath.Join(root, "dev", device)
		if err := unix.Mknod(file, unix.S_IFCHR|0o666, int(unix.Mkdev(1, minor))); err != nil {
			return fmt.Errorf("make device %s: %w", device, err)
		}
		if err := os.Chmod(file, 0o666); err != nil {
			return err
		}
	}
	if err := os.Symlink("/proc/self/fd", filepath.Join(root, "dev/fd")); err != nil {
		return err
	}
	conf := filepath.Join(root, confDirectory)
	if err := os.CopyFS(conf, os.DirFS(filepath.Join(root, "etc/cassandra"))); err != nil {
		return fmt.Errorf("copy configuration: %w", err)
	}
	return filepath.Walk(conf, func(file string, _ os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Chown(file, uid, gid)
	})
}

// loopbackUp brings up the only interface of a new network namespace.
func loopbackUp() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("bring up loopback: %w", err)
	}
	defer func() { _ = unix.Close(socket) }()
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("bring up loopback: %w", err)
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("bring up loopback: %w", err)
	}
	return nil
}

// dropPrivileges leaves no capability, and none can be gained again.
func dropPrivileges() error {
	for capability := uintptr(0); capability <= unix.CAP_LAST_CAP; capability++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil && err != unix.EINVAL {
			return fmt.Errorf("drop capability %d: %w", capability, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("forbid new privileges: %w", err)
	}
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("drop groups: %w", err)
	}
	if err := syscall.Setgid(gid); err != nil {
		return fmt.Errorf("become group %d: %w", gid, err)
	}
	if err := syscall.Setuid(uid); err != nil {
		return fmt.Errorf("become user %d: %w", uid, err)
	}
	return nil
}

func lookPath(program string, env []string) (string, error) {
	for _, variable := range env {
		if directories, ok := strings.CutPrefix(variable, "PATH="); ok {
			for directory := range strings.SplitSeq(directories, ":") {
				if info, err := os.Stat(filepath.Join(directory, program)); err == nil && info.Mode()&0o111 != 0 {
					return filepath.Join(directory, program), nil
				}
			}
		}
	}
	return "", fmt.Errorf("the image has no program %s", program)
}

// run runs a program inside the container as its user and returns its output.
func (c *container) run(ctx context.Context, arguments ...string) (string, error) {
	enter := []string{"--target", strconv.Itoa(c.process.Process.Pid), "--mount", "--net", "--pid", "--uts", "--ipc",
		"--root", "--wd",
		"--setuid", strconv.Itoa(uid), "--setgid", strconv.Itoa(gid), "--", "/usr/bin/env", "-i"}
	command := exec.CommandContext(ctx, "nsenter", append(append(enter, c.env...), arguments...)...)
	out, err := command.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// DialContext connects from inside the container's network: the CQL driver
// uses it as its dialer.
func (c *container) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result, 1)
	go func() {
		// The thread changes its network namespace for good: it ends with the
		// goroutine, because it is never unlocked.
		runtime.LockOSThread()
		namespace, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", c.process.Process.Pid))
		if err != nil {
			results <- result{err: fmt.Errorf("enter network of container: %w", err)}
			return
		}
		defer func() { _ = namespace.Close() }()
		if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err != nil {
			results <- result{err: fmt.Errorf("enter network of container: %w", err)}
			return
		}
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, network, address)
		results <- result{conn, err}
	}()
	r := <-results
	return r.conn, r.err
}

// stop asks the container to end and returns its exit code: 143 when a JVM was
// ended by SIGTERM.
func (c *container) stop(ctx context.Context) (int, error) {
	if err := c.process.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, fmt.Errorf("stop container: %w", err)
	}
	select {
	case end := <-c.done:
		var exit *exec.ExitError
		if end != nil && !errors.As(end, &exit) {
			return 0, fmt.Errorf("stop container: %w", end)
		}
		return c.process.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("stop container: %w", ctx.Err())
	}
}

// kill ends the container at once, if it still runs.
func (c *container) kill() { _ = c.process.Process.Kill() }
