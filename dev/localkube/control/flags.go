package control

import (
	"fmt"

	"helenus.io/helenus/dev/localkube/network"
	"helenus.io/helenus/dev/localkube/state"
)

// issuer of service account tokens, as in clusters made by kubeadm.
const issuer = "https://kubernetes.default.svc.cluster.local"

// apiOnlyServices is the service range of a cluster without nodes: nothing
// routes it, so it may be the same for all of them.
const apiOnlyServices, apiOnlyKubernetes = "10.96.0.0/16", "10.96.0.1"

// auditPolicy records who did what to which object, not the objects. Probes of
// health are left out; they would be most of the log of an idle cluster.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  nonResourceURLs: ["/readyz*", "/healthz*", "/livez*"]
- level: Metadata
`

func etcdFlags(dir state.Dir, c *state.Cluster) []string {
	client := fmt.Sprintf("https://%s:%d", c.Address, c.EtcdPort)
	peer := fmt.Sprintf("https://%s:%d", c.Address, c.EtcdPeerPort)
	cert, key, ca := dir.PKI("etcd.crt"), dir.PKI("etcd.key"), dir.PKI("ca.crt")
	return []string{
		"--name=localkube",
		"--data-dir=" + dir.Data("etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=localkube=" + peer,
		"--cert-file=" + cert, "--key-file=" + key, "--trusted-ca-file=" + ca, "--client-cert-auth",
		"--peer-cert-file=" + cert, "--peer-key-file=" + key, "--peer-trusted-ca-file=" + ca, "--peer-client-cert-auth",
		"--log-level=warn",
		// Only a crash of the whole machine could lose what is not yet on disk,
		// and it would take the nodes with it.
		"--unsafe-no-fsync",
	}
}

func apiServerFlags(dir state.Dir, c *state.Cluster) []string {
	flags := []string{
		"--bind-address=" + c.Address,
		"--advertise-address=" + c.Address,
		fmt.Sprintf("--secure-port=%d", c.APIPort),
		fmt.Sprintf("--etcd-servers=https://%s:%d", c.Address, c.EtcdPort),
		"--etcd-cafile=" + dir.PKI("ca.crt"),
		"--etcd-certfile=" + dir.PKI("apiserver.crt"),
		"--etcd-keyfile=" + dir.PKI("apiserver.key"),
		"--service-cluster-ip-range=" + serviceRange(c),
		"--client-ca-file=" + dir.PKI("ca.crt"),
		"--tls-cert-file=" + dir.PKI("apiserver.crt"),
		"--tls-private-key-file=" + dir.PKI("apiserver.key"),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged",
		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + dir.PKI("sa.pub"),
		"--service-account-signing-key-file=" + dir.PKI("sa.key"),
		"--kubelet-certificate-authority=" + dir.PKI("ca.crt"),
		"--kubelet-client-certificate=" + dir.PKI("apiserver.crt"),
		"--kubelet-client-key=" + dir.PKI("apiserver.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--requestheader-client-ca-file=" + dir.PKI("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + dir.PKI("front-proxy-client.crt"),
		"--proxy-client-key-file=" + dir.PKI("front-proxy-client.key"),
		// The host has routes to pods but no kube-proxy: webhooks are called at
		// a pod's address instead of the service's.
		"--enable-aggregator-routing",
		"--audit-policy-file=" + dir.Config("audit-policy.yaml"),
		"--audit-log-path=" + dir.Audit(),
		"--audit-log-maxsize=256",
		"--audit-log-maxbackup=4",
		"--profiling=false",
	}
	if c.APIOnly {
		// The endpoint of the service `kubernetes` must not be a loopback
		// address, so without nodes there is none.
		flags = append(flags, "--endpoint-reconciler-type=none")
	}
	return append(flags, c.APIServerArgs...)
}

func controllerManagerFlags(dir state.Dir, c *state.Cluster) []string {
	config := dir.Config("controller-manager.kubeconfig")
	flags := []string{
		"--kubeconfig=" + config,
		"--authentication-kubeconfig=" + config,
		"--authorization-kubeconfig=" + config,
		"--bind-address=" + c.Address,
		fmt.Sprintf("--secure-port=%d", c.ManagerPort),
		"--root-ca-file=" + dir.PKI("ca.crt"),
		"--service-account-private-key-file=" + dir.PKI("sa.key"),
		"--cluster-signing-cert-file=" + dir.PKI("ca.crt"),
		"--cluster-signing-key-file=" + dir.PKI("ca.key"),
		"--cert-dir=" + dir.Data("controller-manager"),
		"--flex-volume-plugin-dir=" + dir.Data("flexvolume"),
		"--use-service-account-credentials",
		// There is one of it; a lease would only cost a write every two seconds.
		"--leader-elect=false",
		"--profiling=false",
	}
	return flags
}

func schedulerFlags(dir state.Dir, c *state.Cluster) []string {
	config := dir.Config("scheduler.kubeconfig")
	return []string{
		"--kubeconfig=" + config,
		"--authentication-kubeconfig=" + config,
		"--authorization-kubeconfig=" + config,
		"--bind-address=" + c.Address,
		"--cert-dir=" + dir.Data("scheduler"),
		"--leader-elect=false",
		"--profiling=false",
	}
}

func serviceRange(c *state.Cluster) string {
	if c.APIOnly {
		return apiOnlyServices
	}
	return network.PlanFor(c.Subnet).Services().String()
}

// apiServerHosts are the names and addresses under which the API server is
// asked.
func apiServerHosts(c *state.Cluster) []string {
	kubernetes := apiOnlyKubernetes
	if !c.APIOnly {
		kubernetes = network.PlanFor(c.Subnet).KubernetesService().String()
	}
	return []string{
		c.Address, kubernetes, "127.0.0.1", "localhost",
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
	}
}
