package scene

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Memory is what of a process is resident, in bytes.
type Memory struct {
	// Now, and of it what is not of a file such as its program.
	Now, Anonymous uint64
	// Peak since its start, or since ForgetPeaks.
	Peak uint64
}

// AgentMemory is that of the agent in a pod of the local cluster.
func (s *Scene) AgentMemory(pod types.UID) (Memory, error) {
	pid, err := s.ProcessOf(pod, agentProcess)
	if err != nil {
		return Memory{}, err
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, fmt.Errorf("read the memory of an agent: %w", err)
	}
	var m Memory
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[2] != "kB" {
			continue
		}
		kb, err := strconv.ParseUint(fields[1], 10, 64)
		if err != nil {
			return Memory{}, fmt.Errorf("read the memory of an agent: %w", err)
		}
		switch fields[0] {
		case "VmRSS:":
			m.Now = kb << 10
		case "RssAnon:":
			m.Anonymous = kb << 10
		case "VmHWM:":
			m.Peak = kb << 10
		}
	}
	if m.Now == 0 || m.Anonymous == 0 || m.Peak == 0 {
		return Memory{}, fmt.Errorf("read the memory of an agent: process %d has %+v", pid, m)
	}
	return m, nil
}

// ForgetPeak has the peak of an agent's memory count from now on (proc_pid_clear_refs(5)).
func (s *Scene) ForgetPeak(pod types.UID) error {
	pid, err := s.ProcessOf(pod, agentProcess)
	if err != nil {
		return err
	}
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}

// AgentMemories are those of all nodes of a ring.
func (r *Ring) AgentMemories(ctx context.Context) ([]Memory, error) {
	var all []Memory
	for _, name := range r.NodeNames(ctx) {
		pod, found := r.Now(ctx).Pod(name)
		if !found {
			return nil, fmt.Errorf("read the memory of the agent of %s: it has no pod", name)
		}
		m, err := r.AgentMemory(pod.UID)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// ForgetPeaks has the peaks of all nodes count from now on.
func (r *Ring) ForgetPeaks(ctx context.Context) error {
	for _, name := range r.NodeNames(ctx) {
		pod, _ := r.Now(ctx).Pod(name)
		if err := r.ForgetPeak(pod.UID); err != nil {
			return fmt.Errorf("forget the peak of the agent of %s: %w", name, err)
		}
	}
	return nil
}
