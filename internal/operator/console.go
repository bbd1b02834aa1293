package operator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/internal/inspect"
	"helenus.io/helenus/internal/inspectapi"
)

// Console is how browsers reach the console through a Service.
type Console struct {
	// Address is where it listens, such as :8083; 0 turns it off.
	Address string
	// Hosts are the names under which it is reached.
	Hosts []string
	// CertificateDir has tls.crt and tls.key. If it is empty, browsers cannot verify the one shown.
	CertificateDir string
	// PodAddress is where other replicas reach this one.
	PodAddress string
}

func (c Console) served() bool { return c.Address != "" && c.Address != "0" }

// labels are those of the Lease, by which other replicas find the one that leads.
func (c Console) labels(certificate []byte) (map[string]string, error) {
	out := map[string]string{inspectapi.FingerprintLabel: inspectapi.Fingerprint(certificate)}
	if !c.served() {
		return out, nil
	}
	if len(c.Hosts) == 0 {
		return nil, errors.New("--console-hosts is not set: name the hosts under which browsers reach the console")
	}
	address, err := netip.ParseAddr(c.PodAddress)
	if err != nil {
		return nil, fmt.Errorf("read --pod-address, which other replicas reach: %w", err)
	}
	out[inspectapi.AddressLabel] = inspectapi.LabelOf(address)
	return out, nil
}

// leader is the replica that the Lease names. All listen on the same port.
func leader(ctx context.Context, from client.Reader, namespace, listens string) (inspect.Leader, error) {
	lease := &coordinationv1.Lease{}
	if err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: inspectapi.LeaseName}, lease); err != nil {
		return inspect.Leader{}, fmt.Errorf("get the Lease: %w", err)
	}
	if inspectapi.LeaderOf(lease) == "" {
		return inspect.Leader{}, errors.New("the Lease has no holder")
	}
	address, err := inspectapi.AddressIn(lease.Labels[inspectapi.AddressLabel])
	if err != nil {
		return inspect.Leader{}, fmt.Errorf("read the address in the Lease: %w", err)
	}
	_, port, err := net.SplitHostPort(listens)
	if err != nil {
		return inspect.Leader{}, fmt.Errorf("read the address to listen on: %w", err)
	}
	return inspect.Leader{Address: net.JoinHostPort(address.String(), port),
		Fingerprint: lease.Labels[inspectapi.FingerprintLabel]}, nil
}
