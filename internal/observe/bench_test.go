package observe

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/internal/core/facts"
)

// BenchmarkKeptAnswers is the memory that the answers of all nodes of a cluster take, as they are
// decoded and as they are kept: in bytes for each node.
func BenchmarkKeptAnswers(b *testing.B) {
	for _, nodes := range []int{9, 100, 1000} {
		text := answerOf(b, nodes)
		for name, keep := range map[string]bool{"decoded": false, "kept": true} {
			b.Run(fmt.Sprintf("%d/%s", nodes, name), func(b *testing.B) {
				for b.Loop() {
					before := heap()
					a := &Agents{contacts: map[Target]*contact{}}
					for i := range nodes {
						answer := &facts.Agent{}
						if err := json.Unmarshal(text, answer); err != nil {
							b.Fatal(err)
						}
						if keep {
							a.keep(orders, answer)
						}
						c := &contact{}
						c.set(answer, "")
						a.contacts[Target{Cluster: orders, Node: fmt.Sprint(i), Pod: types.UID(fmt.Sprint(i))}] = c
					}
					b.ReportMetric(float64(heap()-before)/float64(nodes), "B/node")
					runtime.KeepAlive(a)
				}
			})
		}
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// answerOf a node of a ring of 16 tokens a node and 20 keyspaces, as it comes over the network.
func answerOf(b *testing.B, nodes int) []byte {
	ring := &facts.Ring{Mode: facts.ModeNormal, HostID: "5d1ba3c0-0000-4000-8000-000000000000",
		Keyspaces: map[string]string{}}
	for i := range nodes {
		e := facts.Endpoint{
			Address: fmt.Sprintf("10.0.%d.%d", i/250, i%250), HostID: fmt.Sprintf("5d1ba3c0-0000-4000-8000-%012d", i),
			Datacenter: "dc1", Rack: fmt.Sprintf("r%d", i%3),
			Status: facts.StatusNormal, Live: true, Release: "5.0.6",
			SchemaVersion: "11f7ae1a-ad5b-3e5a-8a2e-c0bc1a0b5c11", Load: int64(i),
		}
		for t := range int64(16) {
			e.Tokens = append(e.Tokens, int64(i)<<20+t<<50)
		}
		ring.Endpoints = append(ring.Endpoints, e)
	}
	for i := range 20 {
		ring.Keyspaces[fmt.Sprintf("keyspace_%d", i)] = "NetworkTopologyStrategy {dc1=3}"
	}
	text, err := json.Marshal(&facts.Agent{Ring: ring})
	if err != nil {
		b.Fatal(err)
	}
	return text
}
