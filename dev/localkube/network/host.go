package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// InUse lists what the addresses and routes of this machine cover. The default
// route covers everything and says nothing.
func InUse() ([]netip.Prefix, error) {
	var used []netip.Prefix
	add := func(n *net.IPNet) {
		addr, ok := netip.AddrFromSlice(n.IP.To4())
		bits, _ := n.Mask.Size()
		if ok && bits > 0 {
			used = append(used, netip.PrefixFrom(addr, bits).Masked())
		}
	}
	addresses, err := netlink.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	for _, a := range addresses {
		add(a.IPNet)
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	for _, r := range routes {
		if r.Dst != nil {
			add(r.Dst)
		}
	}
	return used, nil
}

// alias marks a bridge as ours, so that `up` takes none that is somebody
// else's and `down` removes none.
func alias(cluster string) string { return aliasPrefix + cluster }

const aliasPrefix = "localkube cluster "

// Clusters names the clusters that have a bridge on this machine.
func Clusters() ([]string, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list network links: %w", err)
	}
	var names []string
	for _, link := range links {
		if name, ok := strings.CutPrefix(link.Attrs().Alias, aliasPrefix); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

// MakeBridge makes the cluster's bridge with its two addresses. A bridge of the
// cluster that is there already is completed.
func (p Plan) MakeBridge(cluster string) error {
	link, err := netlink.LinkByName(p.Bridge())
	switch {
	case errors.As(err, &netlink.LinkNotFoundError{}):
		if link, err = p.addBridge(cluster); err != nil {
			return err
		}
	case err != nil:
		return fmt.Errorf("find bridge %s: %w", p.Bridge(), err)
	case link.Attrs().Alias != alias(cluster):
		return fmt.Errorf("network link %s is there and is not of cluster %s (its alias is %q): remove it with `ip "+
			"link delete %s`, or rename it", p.Bridge(), cluster, link.Attrs().Alias, p.Bridge())
	}
	for _, address := range []netip.Addr{p.ControlPlane(), p.DNS()} {
		if err := netlink.AddrReplace(link, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(address,
			p.Machines().Bits()))}); err != nil {
			return fmt.Errorf("give bridge %s the address %s: %w", p.Bridge(), address, err)
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set bridge %s up: %w", p.Bridge(), err)
	}
	return nil
}

func (p Plan) addBridge(cluster string) (netlink.Link, error) {
	if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: p.Bridge()}}); err != nil {
		return nil, fmt.Errorf("make bridge %s (the kernel needs bridge support: try `modprobe bridge`): %w",
			p.Bridge(), err)
	}
	link, err := netlink.LinkByName(p.Bridge())
	if err != nil {
		return nil, fmt.Errorf("find bridge %s: %w", p.Bridge(), err)
	}
	if err := netlink.LinkSetAlias(link, alias(cluster)); err != nil {
		return nil, fmt.Errorf("mark bridge %s: %w", p.Bridge(), err)
	}
	return link, nil
}

// RemoveBridge removes the bridge, its addresses and its routes. A bridge that
// is not of the cluster stays.
func (p Plan) RemoveBridge(cluster string) error {
	link, err := netlink.LinkByName(p.Bridge())
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find bridge %s: %w", p.Bridge(), err)
	}
	if link.Attrs().Alias != alias(cluster) {
		return nil
	}
	if err := netlink.LinkDel(link); err != nil {
		return fmt.Errorf("remove bridge %s: %w", p.Bridge(), err)
	}
	return nil
}

// Connect lays the cable from the bridge to node i, whose network namespace is
// that of the process, and sets the node's addresses and routes.
func (p Plan) Connect(i, pid int) error {
	// The cable of an earlier life of the node, if any.
	if err := p.Disconnect(i); err != nil {
		return err
	}
	bridge, err := netlink.LinkByName(p.Bridge())
	if err != nil {
		return fmt.Errorf("find bridge %s: %w", p.Bridge(), err)
	}
	inside := p.Link(i) + "e"
	cable := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: p.Link(i), MasterIndex: bridge.Attrs().Index},
		PeerName:  inside,
	}
	if err := netlink.LinkAdd(cable); err != nil {
		return fmt.Errorf("make link %s (the kernel needs veth support: try `modprobe veth`): %w", p.Link(i), err)
	}
	end, err := netlink.LinkByName(inside)
	if err != nil {
		return fmt.Errorf("find link %s: %w", inside, err)
	}
	if err := netlink.LinkSetNsPid(end, pid); err != nil {
		return fmt.Errorf("move link %s into the node: %w", inside, err)
	}
	host, err := netlink.LinkByName(p.Link(i))
	if err != nil {
		return fmt.Errorf("find link %s: %w", p.Link(i), err)
	}
	if err := netlink.LinkSetUp(host); err != nil {
		return fmt.Errorf("set link %s up: %w", p.Link(i), err)
	}
	if err := p.configureNode(i, pid, inside); err != nil {
		return err
	}
	// The host reaches pods directly.
	route := &netlink.Route{LinkIndex: bridge.Attrs().Index, Dst: ipNet(p.Pods(i)), Gw: p.Node(i).AsSlice()}
	if err := netlink.RouteReplace(route); err != nil {
		return fmt.Errorf("route to the pods of node %d: %w", i, err)
	}
	return nil
}

// configureNode works in the node's network namespace through a socket that was
// opened there; this process stays where it is.
func (p Plan) configureNode(i, pid int, inside string) error {
	ns, err := netns.GetFromPid(pid)
	if err != nil {
		return fmt.Errorf("open the network namespace of the node: %w", err)
	}
	defer func() { _ = ns.Close() }()
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("enter the network namespace of the node: %w", err)
	}
	defer h.Close()
	lo, err := h.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find the node's loopback: %w", err)
	}
	if err := h.LinkSetUp(lo); err != nil {
		return fmt.Errorf("set the node's loopback up: %w", err)
	}
	eth, err := h.LinkByName(inside)
	if err != nil {
		return fmt.Errorf("find the node's link: %w", err)
	}
	if err := h.LinkSetName(eth, "eth0"); err != nil {
		return fmt.Errorf("name the node's link: %w", err)
	}
	address := netip.PrefixFrom(p.Node(i), p.Machines().Bits())
	if err := h.AddrAdd(eth, &netlink.Addr{IPNet: ipNet(address)}); err != nil {
		return fmt.Errorf("give the node its address %s: %w", address, err)
	}
	if err := h.LinkSetUp(eth); err != nil {
		return fmt.Errorf("set the node's link up: %w", err)
	}
	if err := h.RouteAdd(&netlink.Route{LinkIndex: eth.Attrs().Index, Gw: p.ControlPlane().AsSlice()}); err != nil {
		return fmt.Errorf("set the node's default route: %w", err)
	}
	// To every node the plan has room for, so that one added later is known.
	for other := 1; other <= MaxNodes; other++ {
		if other == i {
			continue
		}
		route := &netlink.Route{LinkIndex: eth.Attrs().Index, Dst: ipNet(p.Pods(other)), Gw: p.Node(other).AsSlice()}
		if err := h.RouteAdd(route); err != nil {
			return fmt.Errorf("route from node %d to the pods of node %d: %w", i, other, err)
		}
	}
	return nil
}

// Disconnect pulls the cable of node i. Nothing the node sends after that
// reaches anybody.
func (p Plan) Disconnect(i int) error {
	link, err := netlink.LinkByName(p.Link(i))
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find link %s: %w", p.Link(i), err)
	}
	if err := netlink.LinkDel(link); err != nil {
		return fmt.Errorf("remove link %s: %w", p.Link(i), err)
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 32)}
}
