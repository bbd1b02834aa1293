package pod

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/internal/agentapi"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/pki"
)

// peerTimeout is what one peer gets to answer. They are asked together, so this is also what all of
// them take.
const peerTimeout = 2 * time.Second

// Peers asks the agents of other nodes over mutual TLS.
type Peers struct {
	cluster types.UID
	source  pki.Source
	now     func() time.Time
	// address is where the agent of a pod answers, by the pod's address.
	address func(podIP string) string
}

// NewPeers asks with the certificates of source. Address is agentapi.FactsAddress, or another
// mapping where all pods share one host.
func NewPeers(cluster types.UID, source pki.Source, now func() time.Time, address func(string) string) *Peers {
	return &Peers{cluster: cluster, source: source, now: now, address: address}
}

// Ask asks all of them at once. Whoever does not prove to be a node of this cluster is silent.
func (p *Peers) Ask(ctx context.Context, addresses []string, address, hostID string) (answers []facts.Peer,
	silent []string) {
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, target := range addresses {
		all.Go(func() {
			answer, err := p.ask(ctx, target, address, hostID)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				silent = append(silent, target)
				return
			}
			answers = append(answers, answer)
		})
	}
	all.Wait()
	slices.SortFunc(answers, func(a, b facts.Peer) int { return strings.Compare(a.Node+a.Asked, b.Node+b.Asked) })
	slices.Sort(silent)
	return answers, silent
}

func (p *Peers) ask(ctx context.Context, target, address, hostID string) (facts.Peer, error) {
	client := agentapi.NewPeerClient(p.source, p.address(target), p.now)
	defer client.Close()
	id, err := client.Identity(ctx, address, hostID)
	if err != nil {
		return facts.Peer{}, err
	}
	if id.ClusterUID != p.cluster || id.Node == "" {
		return facts.Peer{}, fmt.Errorf("the agent at %s says that it is node %q of cluster %s", target, id.Node,
			id.ClusterUID)
	}
	id.Asked = target
	return *id, nil
}
