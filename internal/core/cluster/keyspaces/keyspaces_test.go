package keyspaces

import (
	"testing"

	"helenus.io/helenus/internal/core/facts"
)

// One system keyspace with fewer replicas than wanted is enough; what cannot be read is nobody's
// business.
func TestWhichSystemKeyspacesHaveTooFewReplicas(t *testing.T) {
	const enough, fewer, odd = "NetworkTopologyStrategy {dc1=3}", "NetworkTopologyStrategy {dc1=2}", "Own {x=1}}"
	for name, c := range map[string]struct {
		keyspaces map[string]string
		want      bool
	}{
		"all have enough": {map[string]string{"system_auth": enough, "system_distributed": enough,
			"system_traces": enough}, false},
		"one has not": {map[string]string{"system_auth": enough, "system_distributed": enough,
			"system_traces": fewer}, true},
		"the only one has not": {map[string]string{"system_traces": fewer}, true},
		"one cannot be read, another has not": {map[string]string{"system_auth": odd, "system_distributed": odd,
			"system_traces": fewer}, true},
		"one cannot be read": {map[string]string{"system_auth": odd, "system_distributed": enough}, false},
		"one is nowhere":     {map[string]string{"system_auth": "NetworkTopologyStrategy {dc2=3}"}, true},
		"there are none":     {nil, false},
	} {
		if got := tooFew(&facts.Ring{Keyspaces: c.keyspaces}, map[string]int32{"dc1": 3}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
