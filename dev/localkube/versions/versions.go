package versions

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	// DefaultKubernetes is the Kubernetes release that `up` builds when no
	// --kubernetes-version is given.
	DefaultKubernetes = "1.35.4"
	// CoreDNS answers DNS for the pods.
	CoreDNS = "1.15.0"
	// ProvisionerLibrary is what our storage provisioner is built on:
	// sig-storage-lib-external-provisioner.
	ProvisionerLibrary = "13.0.0"
	// Containerd runs the pods where the machine's own is too old. 2.3 is for Kubernetes 1.36 and
	// 1.37, and kept until April 2028.
	Containerd = "2.3.7"
)

// Kubernetes is a parsed Kubernetes release such as 1.35.4.
type Kubernetes struct {
	Major, Minor, Patch int
}

// oldest is the first minor release whose flags and config this tool writes.
const oldest = 30

// CgroupV1MayFail is the first minor release whose kubelet has to be told that cgroup v1 will do,
// and in which kube-proxy has nftables without a feature gate.
const CgroupV1MayFail = 31

// Containerd2 is the first minor release that containerd 1 is not kept for (containerd,
// RELEASES.md).
const Containerd2 = 36

// Parse reads "1.35.4" or "v1.35.4".
func Parse(s string) (Kubernetes, error) {
	parts := strings.Split(strings.TrimPrefix(s, "v"), ".")
	var n [3]int
	if len(parts) != len(n) {
		return Kubernetes{}, fmt.Errorf("kubernetes version %q: want MAJOR.MINOR.PATCH, for example %s", s,
			DefaultKubernetes)
	}
	for i, part := range parts {
		v, err := strconv.Atoi(part)
		if err != nil || v < 0 {
			return Kubernetes{}, fmt.Errorf("kubernetes version %q: %q is not a number; want MAJOR.MINOR.PATCH, for "+
				"example %s", s, part, DefaultKubernetes)
		}
		n[i] = v
	}
	k := Kubernetes{n[0], n[1], n[2]}
	if k.Major != 1 || k.Minor < oldest {
		return Kubernetes{}, fmt.Errorf("kubernetes version %s: localkube runs 1.%d and newer", k, oldest)
	}
	return k, nil
}

// String gives the release without the leading v: 1.35.4.
func (k Kubernetes) String() string { return fmt.Sprintf("%d.%d.%d", k.Major, k.Minor, k.Patch) }

// Module is the version of the module k8s.io/kubernetes.
func (k Kubernetes) Module() string { return "v" + k.String() }

// Staging is the version of the modules that Kubernetes publishes from its
// staging directory, such as k8s.io/api: 1.35.4 appears there as v0.35.4.
func (k Kubernetes) Staging() string { return fmt.Sprintf("v0.%d.%d", k.Minor, k.Patch) }
