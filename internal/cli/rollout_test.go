package cli

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"helenus.io/helenus/api/v1alpha1"
)

// A held roll-out goes on by the name of its hold, and only what is held or paused is resumed.
func TestResume(t *testing.T) {
	orders := cluster("shop", "orders")
	orders.Spec.Paused, orders.Status.Step = true, &v1alpha1.StepStatus{Name: "RollOut", Hold: "a-1/3"}
	c := to(t, interceptor.Funcs{}, orders)
	d := newDesk()
	if err := d.change(t.Context(), c, "orders", resume); err != nil {
		t.Fatal(err)
	}
	stored := &v1alpha1.CassandraCluster{}
	if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(orders), stored); err != nil {
		t.Fatal(err)
	}
	if stored.Spec.Paused || stored.Spec.Disruption.Resume != "a-1/3" {
		t.Errorf("the spec is paused: %v, resumes %q", stored.Spec.Paused, stored.Spec.Disruption.Resume)
	}
	if err := d.change(t.Context(), c, "orders", resume); err == nil || !strings.Contains(err.Error(), "neither") {
		t.Errorf("resumed again: %v", err)
	}
}

// What is asked for already is refused, and a cluster that is paused says when it stops.
func TestStopAndStart(t *testing.T) {
	for _, datacenter := range []string{"", "dc2"} {
		orders := cluster("shop", "orders")
		orders.Spec.Datacenters = []v1alpha1.Datacenter{{Name: "dc1"}, {Name: "dc2"}}
		c := to(t, interceptor.Funcs{}, orders)
		again := strings.TrimSuffix("kubectl helenus start orders --datacenter "+datacenter, " --datacenter ")
		for _, step := range []struct {
			stop, paused  bool
			says, refused string
			stopped       bool
		}{
			{refused: "is not asked to stop"},
			{stop: true, says: again + " starts it again", stopped: true},
			{stop: true, refused: "is asked to stop already", stopped: true},
			{says: "starts"},
			{stop: true, paused: true, says: "when it is no longer paused", stopped: true},
		} {
			d := newDesk()
			err := d.change(t.Context(), c, "orders", func(o *v1alpha1.CassandraCluster) (string, error) {
				o.Spec.Paused = step.paused
				return setStopped(o, datacenter, step.stop)
			})
			switch {
			case step.refused != "" && (err == nil || !strings.Contains(err.Error(), step.refused)):
				t.Errorf("want it refused with %q: %v", step.refused, err)
			case step.refused == "" && (err != nil || !strings.Contains(d.out.String(), step.says)):
				t.Errorf("want %q: %q, %v", step.says, d.out.String(), err)
			}
			stored := &v1alpha1.CassandraCluster{}
			if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(orders), stored); err != nil {
				t.Fatal(err)
			}
			if is := stored.Spec; is.Stopped != (step.stopped && datacenter == "") ||
				is.Datacenters[1].Stopped != (step.stopped && datacenter != "") || is.Datacenters[0].Stopped {
				t.Errorf("want %q stopped: %v, and no other: %v, %+v", datacenter, step.stopped, is.Stopped,
					is.Datacenters)
			}
		}
		if _, err := setStopped(orders, "dc9", true); err == nil || !strings.Contains(err.Error(), "it has dc1, dc2") {
			t.Errorf("of another datacenter: %v", err)
		}
	}
}

func TestWhatRestarts(t *testing.T) {
	at := metav1.NewTime(now)
	for name, c := range map[string]struct {
		datacenter, rack string
		where            func(*v1alpha1.CassandraCluster) *metav1.Time
		refused          string
	}{
		"all": {"", "", func(c *v1alpha1.CassandraCluster) *metav1.Time { return c.Spec.RestartedAt }, ""},
		"a datacenter": {"dc1", "", func(c *v1alpha1.CassandraCluster) *metav1.Time {
			return c.Spec.Datacenters[0].RestartedAt
		}, ""},
		"a rack": {"dc1", "r2", func(c *v1alpha1.CassandraCluster) *metav1.Time {
			return c.Spec.Datacenters[0].Racks[1].RestartedAt
		}, ""},
		"no such rack":       {"dc1", "r9", nil, `no rack "r9"`},
		"no such datacenter": {"dc9", "", nil, `no datacenter "dc9"`},
		"a rack of any":      {"", "r1", nil, "--rack needs --datacenter"},
	} {
		t.Run(name, func(t *testing.T) {
			orders := &v1alpha1.CassandraCluster{Spec: v1alpha1.CassandraClusterSpec{
				Datacenters: []v1alpha1.Datacenter{{Name: "dc1", Racks: []v1alpha1.Rack{{Name: "r1"}, {Name: "r2"}}}},
			}}
			_, err := restartAt(orders, c.datacenter, c.rack, at)
			switch {
			case c.refused != "":
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("got %v, want %s", err, c.refused)
				}
			case err != nil:
				t.Error(err)
			case c.where(orders) == nil || !c.where(orders).Equal(&at):
				t.Errorf("restartedAt is %v", c.where(orders))
			}
		})
	}
}

func TestRotateAuthority(t *testing.T) {
	orders := cluster("shop", "orders")
	at, hold := metav1.Now(), &metav1.Duration{Duration: 1}
	for _, use := range []v1alpha1.CertificateUse{v1alpha1.UseInternode, v1alpha1.UseClients} {
		if said, err := rotateAuthority(orders, use, at); err != nil || !strings.Contains(said, string(use)) {
			t.Errorf("%s: %q, %v", use, said, err)
		}
		if got := orders.Spec.RotatedAt(use); got == nil || !got.Equal(&at) {
			t.Errorf("%s is rotated at %v", use, got)
		}
		orders.Spec.Security.Encryption.Certificates.Clients = &v1alpha1.ClientsAuthority{Hold: hold}
	}
	if orders.Spec.RotatedAt(v1alpha1.UseInternode) == nil || orders.Spec.ClientsHold() == nil {
		t.Error("what else was asked for is gone")
	}
	issuer := &v1alpha1.CertificateIssuer{Name: "ours"} // the API server refuses both
	orders.Spec.Security.Encryption.Certificates.Internode.IssuerRef = issuer
	if _, err := rotateAuthority(orders, v1alpha1.UseInternode, at); err != nil ||
		orders.Spec.Issuer(v1alpha1.UseInternode) != issuer {
		t.Errorf("the issuer is gone: %v", err)
	}
	if _, err := rotateAuthority(orders, v1alpha1.UseAgent, at); err == nil || !strings.Contains(err.Error(), "internode") {
		t.Errorf("of agents: %v", err)
	}
}
