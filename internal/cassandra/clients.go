package cassandra

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"helenus.io/helenus/internal/jolokia"
)

// mostPlainClients bounds those that are named.
const mostPlainClients = 10

// PlainClients are the addresses from which clients are connected without encryption, with their
// drivers, as the gauge of ClientMetrics has them (ConnectedClient#asMap, 4.1 and 5.0); those that
// are not counted aside.
func (n *Node) PlainClients(ctx context.Context, aside func(netip.Addr) bool) ([]string, error) {
	var connected []struct {
		Address, DriverName, DriverVersion, SSL string
	}
	if err := n.call(ctx, jolokia.Read(beanClients, "Value"), &struct{ Value any }{&connected}); err != nil {
		return nil, fmt.Errorf("read clients: %w", err)
	}
	out := []string{}
	for _, c := range connected {
		from, err := parseEndpoint(c.Address)
		name, a := from.Addr().String(), from.Addr()
		if err != nil {
			name = c.Address // Java 11 writes IPv6 without brackets
		}
		if c.SSL != "true" && !aside(a) {
			out = append(out, fmt.Sprintf("%s (%s %s)", name, c.DriverName, c.DriverVersion))
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), mostPlainClients)], nil
}
