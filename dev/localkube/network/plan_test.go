package network

import (
	"net/netip"
	"strings"
	"testing"
)

func TestRangesOfAPlanDoNotOverlap(t *testing.T) {
	for _, octet := range Octets() {
		p := PlanFor(octet)
		ranges := map[string]netip.Prefix{"machines": p.Machines(), "services": p.Services()}
		for i := 1; i <= MaxNodes; i++ {
			ranges[p.Link(i)] = p.Pods(i)
			if !p.Machines().Contains(p.Node(i)) {
				t.Fatalf("node %d has %s outside %s", i, p.Node(i), p.Machines())
			}
			if !p.AllPods().Overlaps(p.Pods(i)) || p.AllPods().Bits() > p.Pods(i).Bits() {
				t.Fatalf("pods of node %d, %s, outside %s", i, p.Pods(i), p.AllPods())
			}
			if n := p.Node(i); n == p.ControlPlane() || n == p.DNS() {
				t.Fatalf("node %d has the address of the control plane or of DNS: %s", i, n)
			}
			// IFNAMSIZ leaves 15 characters.
			if len(p.Link(i)) > 15 {
				t.Fatalf("link name %q is too long for Linux", p.Link(i))
			}
		}
		for a, ra := range ranges {
			if !p.All().Contains(ra.Addr()) || ra.Masked() != ra {
				t.Fatalf("%s: %s is outside %s or no network address", a, ra, p.All())
			}
			for b, rb := range ranges {
				if a != b && ra.Overlaps(rb) {
					t.Fatalf("%s (%s) overlaps %s (%s)", a, ra, b, rb)
				}
			}
		}
		if p.AllPods().Overlaps(p.Services()) || p.AllPods().Overlaps(p.Machines()) {
			t.Fatal("pods overlap services or machines")
		}
		if !p.Services().Contains(p.KubernetesService()) {
			t.Fatal("the kubernetes service is outside the services")
		}
	}
}

func TestChoose(t *testing.T) {
	every := make([]netip.Prefix, 0, len(Octets()))
	for _, octet := range Octets() {
		every = append(every, PlanFor(octet).Machines())
	}
	for _, tc := range []struct {
		name  string
		inUse []netip.Prefix
		want  string
		err   string
	}{
		{name: "free machine", want: "10.250.0.0/16"},
		{name: "another cluster", inUse: []netip.Prefix{netip.MustParsePrefix("10.250.0.0/24")}, want: "10.249.0.0/16"},
		{name: "a wide private route", inUse: []netip.Prefix{netip.MustParsePrefix("10.192.0.0/10")},
			err: "overlaps an address or route"},
		{name: "a host route", inUse: []netip.Prefix{netip.MustParsePrefix("10.250.77.3/32")}, want: "10.249.0.0/16"},
		{name: "elsewhere", inUse: []netip.Prefix{netip.MustParsePrefix("192.168.0.0/16")}, want: "10.250.0.0/16"},
		{name: "all taken", inUse: every, err: "localkube down"},
	} {
		plan, err := Choose(tc.inUse)
		switch {
		case tc.err != "":
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: error %v, want one with %q", tc.name, err, tc.err)
			}
		case err != nil:
			t.Errorf("%s: %v", tc.name, err)
		case plan.All().String() != tc.want:
			t.Errorf("%s: chose %s, want %s", tc.name, plan.All(), tc.want)
		}
	}
}
