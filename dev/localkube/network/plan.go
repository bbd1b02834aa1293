package network

import (
	"fmt"
	"net/netip"
	"slices"
)

// MaxNodes is how many nodes a plan has addresses for.
const MaxNodes = 60

// Plan gives the addresses of one cluster, all from one 10.x.0.0/16:
//
//	10.x.0.1        API server, etcd, controllers, registry
//	10.x.0.2        DNS
//	10.x.0.10+i     node i, counted from 1
//	10.x.64+i.0/24  pods of node i
//	10.x.240.0/20   services
type Plan struct{ octet int }

// PlanFor gives the plan of a subnet number, the second octet.
func PlanFor(octet int) Plan { return Plan{octet: octet} }

// Octet is the plan's subnet number.
func (p Plan) Octet() int { return p.octet }

func (p Plan) address(third, fourth int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(p.octet), byte(third), byte(fourth)})
}

// All is the whole range of the cluster.
func (p Plan) All() netip.Prefix { return netip.PrefixFrom(p.address(0, 0), 16) }

// Machines is the range of the bridge: the control plane and the nodes.
func (p Plan) Machines() netip.Prefix { return netip.PrefixFrom(p.address(0, 0), 24) }

// ControlPlane is the address of the API server and the registry.
func (p Plan) ControlPlane() netip.Addr { return p.address(0, 1) }

// DNS is the address of CoreDNS. It differs from ControlPlane so that a node
// can be cut off from the API server and still resolve names, as in a cluster
// whose DNS runs on its nodes.
func (p Plan) DNS() netip.Addr { return p.address(0, 2) }

// Node is the address of node i.
func (p Plan) Node(i int) netip.Addr { return p.address(0, 10+i) }

// Pods is the pod range of node i.
func (p Plan) Pods(i int) netip.Prefix { return netip.PrefixFrom(p.address(64+i, 0), 24) }

// AllPods covers the pod ranges of all nodes.
func (p Plan) AllPods() netip.Prefix { return netip.PrefixFrom(p.address(64, 0), 18) }

// Services is the range of ClusterIPs.
func (p Plan) Services() netip.Prefix { return netip.PrefixFrom(p.address(240, 0), 20) }

// KubernetesService is the ClusterIP of the service `kubernetes`: the first
// address of the range.
func (p Plan) KubernetesService() netip.Addr { return p.address(240, 1) }

// Bridge is the name of the cluster's bridge on the host.
func (p Plan) Bridge() string { return fmt.Sprintf("lk%d", p.octet) }

// Link is the host's end of the cable to node i.
func (p Plan) Link(i int) string { return fmt.Sprintf("lk%dn%d", p.octet, i) }

// Octets are the subnet numbers that clusters may have, most wanted first.
func Octets() []int {
	var octets []int
	for octet := 250; octet >= 200; octet-- {
		octets = append(octets, octet)
	}
	return octets
}

// Choose picks the first plan whose range overlaps none of those in use on the
// machine: addresses of its links and destinations of its routes, except the
// default route.
func Choose(inUse []netip.Prefix) (Plan, error) {
	for _, octet := range Octets() {
		plan := PlanFor(octet)
		if !slices.ContainsFunc(inUse, plan.All().Overlaps) {
			return plan, nil
		}
	}
	octets := Octets()
	return Plan{}, fmt.Errorf("choose a network: every range from 10.%d.0.0/16 to 10.%d.0.0/16 overlaps an address "+
		"or route of this machine (see `ip addr` and `ip route`): stop another cluster with `localkube down`, or "+
		"remove a route",
		octets[len(octets)-1], octets[0])
}
