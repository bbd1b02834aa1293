package node

import (
	"fmt"
	"net/netip"

	"helenus.io/helenus/dev/localkube/network"
	"helenus.io/helenus/dev/localkube/registry"
	"helenus.io/helenus/dev/localkube/versions"
)

// Paths inside a node. /var/lib is the node's own, filled from its disk.
const (
	configDir  = "/run/localkube/config"
	cniDir     = configDir + "/cni"
	certsDir   = configDir + "/certs.d"
	binDir     = "/run/localkube/bin"
	runtimeDir = "/run/localkube/runtime"
	containerd = "/run/containerd/containerd.sock"
)

// containerdConfig is accepted by containerd 1.6 and, migrated by itself, by 2: `containerd config
// dump` of 2.3.7 gives every setting in its new place.
//
// restrict_oom_score_adj: without CAP_SYS_RESOURCE, which virtual machines and
// containers often lack, every sandbox would fail to start otherwise.
func containerdConfig(cniBin string) string {
	return fmt.Sprintf(`version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]

[grpc]
  address = %[1]q

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %[2]q
  restrict_oom_score_adj = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"

  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %[3]q
    conf_dir = %[4]q

  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = %[5]q
`, containerd, registry.PauseImage, cniBin, cniDir, certsDir)
}

// hostsConfig sends the pull of every image, whatever its registry, to the
// cluster's registry.
func hostsConfig(p network.Plan) string {
	server := registry.Address(p)
	return fmt.Sprintf(`server = "http://%[1]s"

[host."http://%[1]s"]
  capabilities = ["pull", "resolve"]
`, server)
}

// cniConfig gives pods addresses of the node's range on a bridge of the node.
// Nothing is masqueraded: every pod and the host see a pod's own address.
func cniConfig(pods netip.Prefix) string {
	return fmt.Sprintf(`{
  "cniVersion": "0.4.0",
  "name": "pods",
  "plugins": [
    {
      "type": "bridge",
      "bridge": "cni0",
      "isGateway": true,
      "ipMasq": false,
      "hairpinMode": true,
      "ipam": {
        "type": "host-local",
        "dataDir": "/var/lib/cni/networks",
        "ranges": [[{"subnet": %q}]],
        "routes": [{"dst": "0.0.0.0/0"}]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`, pods)
}

// kubeletConfig leaves pods the whole machine: several nodes share it, and none
// may reserve a part or evict because another one uses much. What must be left
// is an amount: a hundredth of a large disk is more than a ring needs.
func kubeletConfig(p network.Plan, cgroupRoot string, minor int) string {
	cgroupV1 := "failCgroupV1: false\n"
	if minor < versions.CgroupV1MayFail {
		cgroupV1 = ""
	}
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %[1]s/ca.crt}
authorization: {mode: Webhook}
tlsCertFile: %[1]s/kubelet.crt
tlsPrivateKeyFile: %[1]s/kubelet.key
containerRuntimeEndpoint: unix://%[2]s
cgroupDriver: cgroupfs
cgroupRoot: %[3]s
%[5]senforceNodeAllocatable: []
failSwapOn: false
clusterDomain: cluster.local
clusterDNS: [%[4]s]
resolvConf: ""
volumePluginDir: /var/lib/kubelet/volumeplugins
serializeImagePulls: false
maxParallelImagePulls: 4
imageGCHighThresholdPercent: 100
evictionHard:
  memory.available: 50Mi
  nodefs.available: 256Mi
  nodefs.inodesFree: 1%%
  imagefs.available: 256Mi
`, configDir, containerd, cgroupRoot, p.DNS(), cgroupV1)
}

func kubeletFlags(s Spec) []string {
	return []string{
		"--config=" + configDir + "/kubelet.yaml",
		"--kubeconfig=" + configDir + "/kubelet.kubeconfig",
		"--hostname-override=" + s.Name,
		"--node-ip=" + s.plan().Node(s.Index).String(),
		"--node-labels=topology.kubernetes.io/zone=" + s.Zone + ",topology.kubernetes.io/region=local",
	}
}

// kubeProxyFlags: the conntrack limits belong to the whole machine and are often
// read-only, so they are left alone.
func kubeProxyFlags(s Spec) []string {
	flags := []string{
		"--kubeconfig=" + configDir + "/kube-proxy.kubeconfig",
		"--hostname-override=" + s.Name,
		"--proxy-mode=nftables",
		"--cluster-cidr=" + s.plan().AllPods().String(),
		"--conntrack-max-per-core=0",
		"--conntrack-tcp-timeout-established=0",
		"--conntrack-tcp-timeout-close-wait=0",
	}
	if s.Minor < versions.CgroupV1MayFail {
		flags = append(flags, "--feature-gates=NFTablesProxyMode=true")
	}
	return flags
}
