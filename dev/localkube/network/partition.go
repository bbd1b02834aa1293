package network

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

const partitionTable = "localkube_partition"

// partitionRules cut a node, and the pods on it, off from the API server, and
// the API server off from its kubelet. Packets are dropped, not refused, as on
// a broken network. Everything else stays: pods among each other, DNS, clients
// on the host.
func partitionRules(p Plan, apiPort int) string {
	return fmt.Sprintf(`table inet %[1]s
delete table inet %[1]s
table inet %[1]s {
	chain from_kubelet {
		type filter hook output priority -10; policy accept;
		ip daddr %[2]s tcp dport %[3]d drop
	}
	chain from_pods {
		type filter hook forward priority -10; policy accept;
		ip daddr %[2]s tcp dport %[3]d drop
	}
	chain to_kubelet {
		type filter hook input priority -10; policy accept;
		ip saddr %[2]s tcp sport %[3]d drop
		ip saddr %[2]s tcp dport 10250 drop
	}
}
`, partitionTable, p.ControlPlane(), apiPort)
}

// Partition cuts the node with the network namespace of the process off from
// the API server.
func (p Plan) Partition(ctx context.Context, pid, apiPort int) error {
	return nft(ctx, pid, partitionRules(p, apiPort))
}

// Heal takes back Partition. A node that is not cut off stays as it is.
func (p Plan) Heal(ctx context.Context, pid int) error {
	return nft(ctx, pid, fmt.Sprintf("table inet %[1]s\ndelete table inet %[1]s\n", partitionTable))
}

// nft runs a script of nftables, as one transaction, in the network namespace of
// the process.
func nft(ctx context.Context, pid int, script string) error {
	cmd := exec.CommandContext(ctx, "nsenter", "--target", strconv.Itoa(pid), "--net", "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("set firewall rules of the node: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
