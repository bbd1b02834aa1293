package addon

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"helenus.io/helenus/dev/localkube/apiclient"
	"helenus.io/helenus/dev/localkube/build"
	"helenus.io/helenus/dev/localkube/network"
	"helenus.io/helenus/dev/localkube/process"
	"helenus.io/helenus/dev/localkube/state"
)

// Addons are those of one cluster.
type Addons struct {
	Dir     state.Dir
	Cluster *state.Cluster
	Binary  func(name string) string
}

const dnsReadyPort = 8181

// corefile: names of the cluster are known within a second of a change, because
// databases restart with new addresses and their peers must find them. All
// other names do not exist: pods have no way to the internet.
func corefile(p network.Plan, kubeconfig string) string {
	return fmt.Sprintf(`cluster.local in-addr.arpa ip6.arpa {
	bind %[1]s
	errors
	ready %[1]s:%[2]d
	cache 1
	kubernetes {
		kubeconfig %[3]s
		pods insecure
		ttl 1
	}
}

. {
	bind %[1]s
	errors
	template ANY ANY {
		rcode NXDOMAIN
	}
}
`, p.DNS(), dnsReadyPort, kubeconfig)
}

// Start applies the objects of the add-ons and starts their programs. It waits
// until DNS answers.
func (a Addons) Start(ctx context.Context, client *apiclient.Client) error {
	for _, o := range objects {
		if err := client.Apply(ctx, o.path, o.manifest); err != nil {
			return fmt.Errorf("apply %s: %w", o.path, err)
		}
	}
	if _, err := a.start(build.Provisioner,
		"--kubeconfig="+a.Dir.Config("storage.kubeconfig"),
		"--nodes="+a.Dir.Node(""),
		"--name="+provisionerName,
	); err != nil {
		return err
	}
	plan := network.PlanFor(a.Cluster.Subnet)
	file := a.Dir.Config("Corefile")
	if err := state.WriteFile(file, []byte(corefile(plan, a.Dir.Config("dns.kubeconfig"))), 0o644); err != nil {
		return err
	}
	dns, err := a.start(build.CoreDNS, "-conf="+file)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	url := fmt.Sprintf("http://%s:%d/ready", plan.DNS(), dnsReadyPort)
	return process.WaitFor(ctx, 50*time.Millisecond, func(ctx context.Context) error { return ask(ctx, url) }, dns)
}

func (a Addons) start(binary string, flags ...string) (*process.Running, error) {
	return process.Start(process.Spec{
		Name: binary, Path: a.Binary(binary), Args: flags,
		PidFile: a.Dir.Pid(binary), LogFile: a.Dir.Log(binary),
	})
}

func ask(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, res.Status)
	}
	return nil
}
