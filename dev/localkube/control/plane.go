package control

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"helenus.io/helenus/dev/localkube/apiclient"
	"helenus.io/helenus/dev/localkube/build"
	"helenus.io/helenus/dev/localkube/process"
	"helenus.io/helenus/dev/localkube/state"
)

// AdminCertificate is the client certificate of the administrator, whose group
// system:masters may do everything.
const AdminCertificate = "admin"

// patience is how long a component may take to become ready. It is far beyond
// the seconds that it takes, since a busy machine is no failure.
const patience = 3 * time.Minute

// askAgain is the pause between two questions whether a component is ready.
const askAgain = 50 * time.Millisecond

// Plane is the control plane of one cluster.
type Plane struct {
	Dir     state.Dir
	Cluster *state.Cluster
	// Binary gives the path of a built binary.
	Binary func(name string) string
}

// Prepare makes keys, certificates, kubeconfigs and configuration files. What
// exists is kept.
func (p Plane) Prepare() error {
	if err := os.MkdirAll(p.Dir.PKI(""), 0o700); err != nil {
		return fmt.Errorf("make the folder of keys: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(p.Dir.Audit()), 0o755); err != nil {
		return fmt.Errorf("make the folder of the audit log: %w", err)
	}
	if err := p.certificates(); err != nil {
		return err
	}
	if err := state.WriteFile(p.Dir.Config("audit-policy.yaml"), []byte(auditPolicy), 0o644); err != nil {
		return err
	}
	if err := WriteKubeconfig(p.Dir, p.Cluster, p.Dir.Kubeconfig(), AdminCertificate); err != nil {
		return err
	}
	for _, certificate := range []string{"controller-manager", "scheduler", "dns", "storage"} {
		if err := WriteKubeconfig(p.Dir, p.Cluster, p.Dir.Config(certificate+".kubeconfig"), certificate); err != nil {
			return err
		}
	}
	return nil
}

func (p Plane) certificates() error {
	ca, err := openAuthority(p.Dir, "ca")
	if err != nil {
		return err
	}
	for _, s := range []subject{
		{File: AdminCertificate, User: "localkube-admin", Groups: []string{"system:masters"}},
		{File: "apiserver", User: "kube-apiserver", Groups: []string{"system:masters"},
			Hosts: apiServerHosts(p.Cluster)},
		{File: "etcd", User: "etcd", Hosts: []string{p.Cluster.Address}},
		{File: "controller-manager", User: "system:kube-controller-manager"},
		{File: "scheduler", User: "system:kube-scheduler"},
		{File: "kube-proxy", User: "system:kube-proxy"},
		{File: "dns", User: "localkube:dns"},
		{File: "storage", User: "localkube:storage"},
	} {
		if err := ca.issue(s); err != nil {
			return err
		}
	}
	front, err := openAuthority(p.Dir, "front-proxy-ca")
	if err != nil {
		return err
	}
	if err := front.issue(subject{File: "front-proxy-client", User: "front-proxy-client"}); err != nil {
		return err
	}
	return writeServiceAccountKeys(p.Dir)
}

// IssueClient makes a client certificate for a component outside the control
// plane; hosts make it a server certificate as well.
func IssueClient(dir state.Dir, file, user string, groups, hosts []string) error {
	ca, err := openAuthority(dir, "ca")
	if err != nil {
		return err
	}
	return ca.issue(subject{File: file, User: user, Groups: groups, Hosts: hosts})
}

// Client is the administrator's client.
func (p Plane) Client() (*apiclient.Client, error) {
	return apiclient.New(ServerURL(p.Cluster), p.Dir.PKI("ca.crt"), p.Dir.PKI(AdminCertificate+".crt"),
		p.Dir.PKI(AdminCertificate+".key"))
}

// StartAPI starts etcd and the API server and waits until the API answers.
func (p Plane) StartAPI(ctx context.Context) error {
	etcd, err := p.start(build.Etcd, etcdFlags(p.Dir, p.Cluster))
	if err != nil {
		return err
	}
	server, err := p.start(build.APIServer, apiServerFlags(p.Dir, p.Cluster))
	if err != nil {
		return err
	}
	client, err := p.Client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return process.WaitFor(ctx, askAgain, func(ctx context.Context) error {
		if err := client.Ready(ctx); err != nil {
			return err
		}
		// Made by the server itself, shortly after it calls itself ready.
		return client.Get(ctx, "/api/v1/namespaces/default", nil)
	}, etcd, server)
}

// StartControllers starts the controller manager, and the scheduler unless the
// cluster has no nodes to schedule to. They are ready when they work; nothing
// here waits for them.
func (p Plane) StartControllers() error {
	if _, err := p.start(build.ControllerManager, controllerManagerFlags(p.Dir, p.Cluster)); err != nil {
		return err
	}
	if p.Cluster.APIOnly {
		return nil
	}
	_, err := p.start(build.Scheduler, schedulerFlags(p.Dir, p.Cluster))
	return err
}

func (p Plane) start(binary string, flags []string) (*process.Running, error) {
	return process.Start(process.Spec{
		Name: binary, Path: p.Binary(binary), Args: flags,
		PidFile: p.Dir.Pid(binary), LogFile: p.Dir.Log(binary),
	})
}
