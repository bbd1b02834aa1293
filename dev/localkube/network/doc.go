// Package network plans the addresses of a cluster and makes its bridge, links
// and routes by netlink, and the firewall rules that cut a node off from the API
// server. It imports vishvananda/netlink and the standard library.
package network
