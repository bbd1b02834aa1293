package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// operator is a process of the real one.
type operator struct {
	command *exec.Cmd
	log     string        // the file of what it says
	ended   chan struct{} // closed when the process has ended
}

// startOperator runs the program against an API server, with more flags than it needs if some are
// given; what it says goes into a file of the folder.
func startOperator(ctx context.Context, program, kubeconfig, folder string, more ...string) (*operator, error) {
	o := &operator{log: filepath.Join(folder, "operator.log"), ended: make(chan struct{})}
	log, err := os.OpenFile(o.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer func() { _ = log.Close() }() // the process has its own
	const anyPort = "127.0.0.1:0"
	flags := []string{"--agent-image", "helenus/agent:scale", "--leader-elect=false", "--metrics-address", anyPort,
		"--health-address", anyPort, "--inspect-address", anyPort}
	o.command = exec.CommandContext(ctx, program, append(flags, more...)...)
	o.command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	o.command.Stdout, o.command.Stderr = log, log
	if err := o.command.Start(); err != nil {
		return nil, fmt.Errorf("start operator: %w", err)
	}
	go func() {
		defer close(o.ended)
		_ = o.command.Wait() // how it ended is said by its state
	}()
	return o, nil
}

// stop ends the operator in order, if it runs.
func (o *operator) stop() {
	_ = o.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-o.ended:
	case <-time.After(30 * time.Second):
		_ = o.command.Process.Kill()
		<-o.ended
	}
}

// words are the last ones that the operator said, for an error.
func (o *operator) words() string {
	text, err := os.ReadFile(o.log)
	if err != nil {
		return err.Error()
	}
	const most = 2000
	return string(text[max(0, len(text)-most):])
}

// memory is how much of it the process has resident, and had at most, in bytes.
func (o *operator) memory() (resident, error) {
	process, err := procfs.NewProc(o.command.Process.Pid)
	if err != nil {
		return resident{}, fmt.Errorf("find the operator's process: %w", err)
	}
	status, err := process.NewStatus()
	if err != nil {
		return resident{}, fmt.Errorf("read memory of the operator: %w", err)
	}
	if status.VmRSS == 0 {
		return resident{}, errors.New("read memory of the operator: it has none, since it has ended")
	}
	return resident{now: status.VmRSS, most: status.VmHWM}, nil
}
