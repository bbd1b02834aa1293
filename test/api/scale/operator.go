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
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// operator is a process of the real one.
type operator struct {
	command *exec.Cmd
	log     *os.File
	// ended is closed when the process has ended; why is how.
	ended chan struct{}
	why   error
}

// startOperator runs the program against an API server; what it says goes into a file of the folder.
func startOperator(ctx context.Context, program string, config *rest.Config, folder string) (*operator, error) {
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := clientcmd.WriteToFile(asKubeconfig(config), kubeconfig); err != nil {
		return nil, fmt.Errorf("write kubeconfig: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(folder, "operator.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	const anyPort = "127.0.0.1:0"
	command := exec.CommandContext(ctx, program, "--agent-image", "helenus/agent:scale", "--leader-elect=false",
		"--metrics-address", anyPort, "--health-address", anyPort, "--inspect-address", anyPort)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start operator: %w", err), log.Close())
	}
	o := &operator{command: command, log: log, ended: make(chan struct{})}
	go func() {
		defer close(o.ended)
		o.why = command.Wait()
	}()
	return o, nil
}

// stop ends the operator in order.
func (o *operator) stop() error {
	_ = o.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-o.ended:
	case <-time.After(30 * time.Second):
		_ = o.command.Process.Kill()
		<-o.ended
	}
	return o.log.Close()
}

// words are the last ones that the operator said, for an error.
func (o *operator) words() string {
	text, err := os.ReadFile(o.log.Name())
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

func asKubeconfig(c *rest.Config) clientcmdapi.Config {
	const name = "scale"
	out := clientcmdapi.NewConfig()
	out.Clusters[name] = &clientcmdapi.Cluster{Server: c.Host, CertificateAuthority: c.CAFile, CertificateAuthorityData: c.CAData}
	out.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificate: c.CertFile, ClientCertificateData: c.CertData, ClientKey: c.KeyFile, ClientKeyData: c.KeyData, Token: c.BearerToken,
	}
	out.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	out.CurrentContext = name
	return *out
}
