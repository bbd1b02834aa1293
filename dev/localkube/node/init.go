package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// restartPause keeps a daemon that fails at once from being started in a loop.
const restartPause = time.Second

// daemonPath begins where containerd must find its shim: that of another release may be in
// /usr/bin.
const daemonPath = runtimeDir + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// daemon is a program that runs as long as the node.
type daemon struct {
	name string
	path string
	args []string
	log  *os.File
	pid  int
}

// Init is the node's process 1. It waits until the host has laid its cable,
// makes the node's file system, starts the daemons and starts them again when
// they end. It returns only with an error.
func Init(specFile string) error {
	log.SetFlags(log.LstdFlags | log.Lmicroseconds)
	content, err := os.ReadFile(specFile)
	if err != nil {
		return fmt.Errorf("read the node's description: %w", err)
	}
	var s Spec
	if err := json.Unmarshal(content, &s); err != nil {
		return fmt.Errorf("read the node's description: %w", err)
	}
	if os.Getpid() != 1 {
		return errors.New("node-init runs as process 1 of a node; start nodes with `localkube up` or `localkube node " +
			"start`")
	}
	if err := awaitCable(); err != nil {
		return err
	}
	daemons, err := s.daemons()
	if err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(s.Name)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	if err := mountAll(s); err != nil {
		return err
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return fmt.Errorf("let the node forward packets of its pods: %w", err)
	}
	return supervise(daemons)
}

// awaitCable blocks until the host writes to the pipe that it left as file
// descriptor 3. A pipe that closes without a byte means the host gave up.
func awaitCable() error {
	pipe := os.NewFile(3, "cable")
	defer func() { _ = pipe.Close() }()
	if _, err := io.ReadFull(pipe, make([]byte, 1)); err != nil {
		return fmt.Errorf("wait for the node's network: %w", err)
	}
	return nil
}

// daemons opens the log files while the host's file system is still in sight.
func (s Spec) daemons() ([]*daemon, error) {
	all := []*daemon{
		{name: "containerd", path: s.Containerd, args: []string{"--config", configDir + "/containerd.toml"}},
		{name: "kubelet", path: binDir + "/kubelet", args: kubeletFlags(s)},
		{name: "kube-proxy", path: binDir + "/kube-proxy", args: kubeProxyFlags(s)},
	}
	for _, d := range all {
		file, err := os.OpenFile(filepath.Join(s.Logs, d.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, fmt.Errorf("open the log of %s: %w", d.name, err)
		}
		d.log = file
	}
	return all, nil
}

// supervise starts the daemons and reaps every process of the node that has
// lost its parent, as process 1 must. The kubelet waits for containerd's
// socket, since it gives up at once without.
func supervise(daemons []*daemon) error {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	starts := make(chan *daemon, len(daemons))
	for _, d := range daemons {
		starts <- d
	}
	for {
		select {
		case d := <-starts:
			if d.name == "kubelet" && !isSocket(containerd) {
				time.AfterFunc(20*time.Millisecond, func() { starts <- d })
				continue
			}
			if err := d.start(); err != nil {
				return err
			}
		case <-children:
			for pid, status := range reap() {
				for _, d := range daemons {
					if d.pid == pid {
						log.Printf("%s ended: exit code %d, signal %d; starting it again", d.name, status.ExitStatus(),
							status.Signal())
						time.AfterFunc(restartPause, func() { starts <- d })
					}
				}
			}
		}
	}
}

func (d *daemon) start() error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return fmt.Errorf("open %s: %w", os.DevNull, err)
	}
	defer func() { _ = null.Close() }()
	if d.name == "containerd" {
		// A socket that the last containerd left is no sign of the next one.
		if err := os.Remove(containerd); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove an old socket: %w", err)
		}
	}
	p, err := os.StartProcess(d.path, append([]string{d.name}, d.args...), &os.ProcAttr{
		Dir:   "/",
		Env:   []string{"PATH=" + daemonPath, "HOME=/root"},
		Files: []*os.File{null, d.log, d.log},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", d.name, err)
	}
	d.pid = p.Pid
	log.Printf("%s started: process %d", d.name, d.pid)
	// reap collects it with all others.
	return p.Release()
}

// reap collects all processes that have ended.
func reap() map[int]syscall.WaitStatus {
	ended := make(map[int]syscall.WaitStatus)
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return ended
		}
		ended[pid] = status
	}
}

func isSocket(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&os.ModeSocket != 0
}
