package scene

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/types"

	localkube "helenus.io/helenus/dev/localkube/cluster"
)

// Process is a process as the kernel knows it: another one may have the same number, but not the
// same start.
type Process struct {
	PID int
	// Start in clock ticks after the host's.
	Start string
}

// findJVM prints pid, parent and start of each process called java. Tools such as nodetool are Java
// too, but not children of helenus-init, which is 1.
const findJVM = `for p in /proc/[0-9]*; do read -r name <$p/comm && [ "$name" = java ] && cut -d' ' -f1,4,22 $p/stat; done 2>/dev/null; true`

// JVM is the Cassandra process of a node.
func (r *Ring) JVM(ctx context.Context, node string) (Process, error) {
	out, err := r.Run(ctx, node, "sh", "-c", findJVM)
	if err != nil {
		return Process{}, fmt.Errorf("find the JVM of %s: %w", node, err)
	}
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[1] != "1" {
			continue
		}
		pid, err := strconv.Atoi(fields[0])
		if err != nil {
			return Process{}, fmt.Errorf("find the JVM of %s: %w", node, err)
		}
		return Process{PID: pid, Start: fields[2]}, nil
	}
	return Process{}, fmt.Errorf("find the JVM of %s: none runs", node)
}

// KillJVM ends the JVM of a node as the kernel does, without a word of warning.
func (r *Ring) KillJVM(ctx context.Context, node string) error {
	jvm, err := r.JVM(ctx, node)
	if err != nil {
		return err
	}
	r.Invariants.ExpectRestart(node)
	if _, err := r.Run(ctx, node, "sh", "-c", fmt.Sprintf("kill -9 %d", jvm.PID)); err != nil {
		return fmt.Errorf("kill the JVM of %s: %w", node, err)
	}
	return nil
}

// FreezeJVM stops the JVM of a node where it is, so that it neither answers nor ends: what a host
// does that waits for a disk for ever.
func (r *Ring) FreezeJVM(ctx context.Context, node string) error {
	jvm, err := r.JVM(ctx, node)
	if err != nil {
		return err
	}
	r.Invariants.ExpectRestart(node)
	if _, err := r.Run(ctx, node, "sh", "-c", fmt.Sprintf("kill -STOP %d", jvm.PID)); err != nil {
		return fmt.Errorf("freeze the JVM of %s: %w", node, err)
	}
	return nil
}

// ThawJVM lets a frozen JVM run on.
func (r *Ring) ThawJVM(ctx context.Context, node string) error {
	jvm, err := r.JVM(ctx, node)
	if err != nil {
		return err
	}
	if _, err := r.Run(ctx, node, "sh", "-c", fmt.Sprintf("kill -CONT %d", jvm.PID)); err != nil {
		return fmt.Errorf("thaw the JVM of %s: %w", node, err)
	}
	return nil
}

// ErrNotHere is why processes of the hosts cannot be reached: only those of the local cluster run
// on this one.
var ErrNotHere = errors.New("the hosts of this Kubernetes are not this one")

// Local is the local cluster, if that is what the scene is in.
func (s *Scene) Local() (*localkube.Cluster, error) {
	c, err := localkube.Open("", "")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotHere, err)
	}
	state := c.State()
	if server := fmt.Sprintf("https://%s:%d", state.Address, state.APIPort); server != s.Kubernetes.Config.Host {
		return nil, fmt.Errorf("%w: the API server is %s and that of the local cluster %s", ErrNotHere,
			s.Kubernetes.Config.Host, server)
	}
	return c, nil
}

// hostInit is the process 1 of a host of the local cluster: what it mounts is found below its root.
func (s *Scene) hostInit(host string) (int, error) {
	local, err := s.Local()
	if err != nil {
		return 0, err
	}
	return local.NodePid(host)
}

// Names of the processes 1 of the two containers of a pod.
const (
	agentProcess = "helenus-agent"
	initProcess  = "helenus-init"
)

// SignalAgent sends a signal to the agent of a pod. It is process 1 of a container without a shell,
// so that it can be reached from the host alone.
func (s *Scene) SignalAgent(pod types.UID, signal syscall.Signal) error {
	return s.signal(pod, agentProcess, signal)
}

// EndContainer ends the Cassandra container of a pod at once, as the kernel does when it needs the
// memory: its process 1 and all others with it.
func (s *Scene) EndContainer(pod types.UID) error { return s.signal(pod, initProcess, syscall.SIGKILL) }

func (s *Scene) signal(pod types.UID, name string, signal syscall.Signal) error {
	pid, err := s.ProcessOf(pod, name)
	if err != nil {
		return err
	}
	return signalProcess(fmt.Sprintf("%s of the pod with uid %s", name, pod), pid, signal)
}

// HangPod stops the JVM of a pod where it is, and with it the shim of the container runtime, so
// that nobody can end that JVM: what a host does that waits for a disk. Both go on by the function
// that it returns, which fails if that JVM has ended before. It may be called again.
func (s *Scene) HangPod(pod types.UID) (goOn func() error, err error) {
	jvm, err := s.ProcessOf(pod, "java")
	if err != nil {
		return nil, err
	}
	init, err := s.ProcessOf(pod, initProcess)
	if err != nil {
		return nil, err
	}
	shim, err := parentOf(init)
	if err != nil {
		return nil, err
	}
	goOn = func() error {
		return errors.Join(signalProcess("the JVM", jvm, syscall.SIGCONT),
			signalProcess("the shim", shim, syscall.SIGCONT))
	}
	if err := signalProcess("the shim", shim, syscall.SIGSTOP); err != nil {
		return nil, err
	}
	if err := signalProcess("the JVM", jvm, syscall.SIGSTOP); err != nil {
		return nil, errors.Join(err, goOn())
	}
	return goOn, nil
}

func signalProcess(what string, pid int, signal syscall.Signal) error {
	if err := syscall.Kill(pid, signal); err != nil {
		return fmt.Errorf("send %s to %s: %w", signal, what, err)
	}
	return nil
}

// ProcessOf is the one process of a name in a pod of the local cluster.
func (s *Scene) ProcessOf(pod types.UID, name string) (int, error) {
	if _, err := s.Local(); err != nil {
		return 0, err
	}
	pids, err := processesOf(pod, name)
	if err != nil {
		return 0, err
	}
	if len(pids) != 1 {
		return 0, fmt.Errorf("find %s of the pod with uid %s: %d processes, want one", name, pod, len(pids))
	}
	return pids[0], nil
}

// exhaust takes all the memory of the cgroup of the process whose number is the argument: with
// cgroup v1 of the controller memory, with v2 the only one. That process is the one that the kernel
// ends first for the lack of it.
const exhaust = `set -e
echo 1000 >/proc/$1/oom_score_adj
group=$(sed -n 's/^[0-9]*:memory://p' /proc/$1/cgroup)
mount=/sys/fs/cgroup/memory
if [ -z "$group" ]; then group=$(sed -n 's/^0:://p' /proc/$1/cgroup); mount=/sys/fs/cgroup; fi
echo $$ >"$mount$group/cgroup.procs"
exec tail /dev/zero`

// ExhaustAgent takes all the memory that the agent's container may have, until the kernel has ended
// the agent.
func (s *Scene) ExhaustAgent(ctx context.Context, pod types.UID) error {
	pid, err := s.ProcessOf(pod, agentProcess)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	hog := exec.CommandContext(ctx, "sh", "-c", exhaust, "sh", strconv.Itoa(pid))
	var said strings.Builder
	hog.Stderr = &said
	if err := hog.Start(); err != nil {
		return fmt.Errorf("exhaust the memory of the agent of the pod with uid %s: %w", pod, err)
	}
	gone := s.poll(ctx, reaction, "the kernel has ended the agent", func(context.Context) error {
		if err := syscall.Kill(pid, 0); err == nil {
			return fmt.Errorf("it is still there %s", said.String())
		}
		return nil
	})
	stop()
	_ = hog.Wait() // it was killed
	return gone
}

// processesOf are the processes of a name in the cgroups of a pod.
func processesOf(pod types.UID, name string) ([]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for _, file := range files {
		comm, err := os.ReadFile(file)
		if err != nil || strings.TrimSpace(string(comm)) != name {
			continue // it has ended, or is another
		}
		groups, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cgroup"))
		if err != nil || !inPod(string(groups), pod) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return nil, fmt.Errorf("list processes: %w", err)
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// parentOf is the process that has started another, or that has taken it over.
func parentOf(pid int) (int, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("find the parent of process %d: %w", pid, err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name before may have spaces
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0, fmt.Errorf("find the parent of process %d: %q", pid, stat)
	}
	return strconv.Atoi(fields[1])
}

// childOf is the child of a name that a process has. Each thread has the children that it started.
func childOf(parent int, name string) (int, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	if err != nil {
		return 0, fmt.Errorf("list the children of process %d: %w", parent, err)
	}
	for _, thread := range threads {
		children, err := os.ReadFile(thread)
		if err != nil {
			continue // it has ended
		}
		for child := range strings.FieldsSeq(string(children)) {
			comm, err := os.ReadFile(filepath.Join("/proc", child, "comm"))
			if err == nil && strings.TrimSpace(string(comm)) == name {
				return strconv.Atoi(child)
			}
		}
	}
	return 0, fmt.Errorf("find %s among the children of process %d: none is", name, parent)
}

// inPod says whether cgroups are those of a pod. Kubelet writes the uid with hyphens, or with
// underscores where systemd keeps the cgroups.
func inPod(cgroups string, pod types.UID) bool {
	return strings.Contains(cgroups, "pod"+string(pod)) ||
		strings.Contains(cgroups, "pod"+strings.ReplaceAll(string(pod), "-", "_"))
}
