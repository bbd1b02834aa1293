package cli

import (
	"strings"
	"testing"

	"helenus.io/helenus/internal/core/status"
	"helenus.io/helenus/internal/inspectapi"
)

func TestReplicas(t *testing.T) {
	node := func(name string, up bool, share float64) status.Replica {
		return status.Replica{Node: name, Datacenter: "dc1", Rack: "r1", Up: up, Share: share}
	}
	of := func(token string, share float64) status.Replicas {
		return status.Replicas{Keyspace: "shop", Replication: "NetworkTopologyStrategy {dc1=2}", Token: token,
			Served: []status.Served{{Datacenter: "dc1", Message: "1 up\x1b[31m"}},
			Nodes:  []status.Replica{node("n1", true, share), node("n2", false, share)}}
	}
	for name, c := range map[string]struct {
		columns []string
		answer  reply
		asked   string
		want    string // printed, or the error
	}{
		"a keyspace": {nil, reply{status: 200, body: of("", 0.5)}, "?keyspace=shop", `
Keyspace:  shop, NetworkTopologyStrategy {dc1=2}
Served:    No, 1 up [31m

NODE  RACK    UP   SHARE
n1    dc1/r1  Yes  50.0%
n2    dc1/r1  No   50.0%
`},
		"a key": {[]string{"text:a b", "int:1"}, reply{status: 200, body: of("-5", 0)},
			"?column=text%3Aa+b&column=int%3A1&keyspace=shop", `
Keyspace:  shop, NetworkTopologyStrategy {dc1=2}
Token:     -5
Served:    No, 1 up [31m

NODE  RACK    UP   SHARE
n1    dc1/r1  Yes  -
n2    dc1/r1  No   -
`},
		"no key": {[]string{"bob"}, reply{}, "", `read column 1 of the key: "bob": want TYPE:VALUE, with TYPE one of text, ` +
			"int, bigint, uuid and blob"},
		"no keyspace": {nil, reply{status: 400, refusal: inspectapi.Refusal{Error: "no such keyspace"}}, "?keyspace=shop",
			"operator helenus-b refuses (400): no such keyspace"},
	} {
		t.Run(name, func(t *testing.T) {
			to := newReplica(t, c.answer)
			d := newDesk()
			a := &apiServer{mayForward: true, replicas: map[string]*replica{"helenus-b": to}}
			err := d.replicas(t.Context(), through(t, a, nil), "orders", "shop", c.columns)
			got := "\n" + d.out.String()
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
			if asked := strings.Join(to.paths, " "); strings.TrimPrefix(asked, "/v1/namespaces/shop/clusters/orders/replicas") !=
				c.asked {
				t.Errorf("asked %s", asked)
			}
		})
	}
}
