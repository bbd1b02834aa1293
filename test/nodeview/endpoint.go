package nodeview

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// parseEndpoint reads an address with port as Cassandra prints it: "10.0.0.1:7000",
// "/10.0.0.1:7000", "name/10.0.0.1:7000", "[2001:db8::1]:7000". A zone of an IPv6 address is
// dropped, since it has a meaning only on the host that prints it.
func parseEndpoint(text string) (netip.AddrPort, error) {
	_, address, found := strings.Cut(text, "/")
	if !found {
		address = text
	}
	endpoint, err := netip.ParseAddrPort(address)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("parse endpoint %q: %w", text, err)
	}
	return netip.AddrPortFrom(endpoint.Addr().WithZone("").Unmap(), endpoint.Port()), nil
}

// parseEndpoints reads a list of endpoints and sorts it; Cassandra's order is that of a hash table.
func parseEndpoints(texts []string) ([]netip.AddrPort, error) {
	endpoints := make([]netip.AddrPort, 0, len(texts))
	for _, text := range texts {
		endpoint, err := parseEndpoint(text)
		if err != nil {
			return nil, err
		}
		endpoints = append(endpoints, endpoint)
	}
	slices.SortFunc(endpoints, netip.AddrPort.Compare)
	return endpoints, nil
}
