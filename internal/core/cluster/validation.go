package cluster

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/render"
)

// validation refuses what the schema cannot see: settings that this release of Cassandra does not know, overlays that touch what is ours, and changes that
// are not supported yet. A refused spec changes nothing: what exists is kept going as its records describe it.
func validation(p *pass) result {
	reason, err := p.refusal()
	if err == nil {
		return done()
	}
	p.held = true
	p.stall(reason, "%s", err)
	return stuck("the spec is refused and nothing is changed")
}

func (p *pass) refusal() (string, error) {
	if err := p.checkSettings(); err != nil {
		return v1alpha1.ReasonUnknownSetting, err
	}
	if err := p.checkSpec(); err != nil {
		return v1alpha1.ReasonInvalidSpec, err
	}
	if err := p.checkChange(); err != nil {
		return v1alpha1.ReasonUnsupportedChange, err
	}
	return "", nil
}

// checkSettings validates the settings of each rack. The racks usually inherit the same ones: the same words once are enough.
func (p *pass) checkSettings() error {
	var errs []error
	said, seen := map[string]bool{}, map[string]bool{}
	for _, w := range p.wanted {
		rack := w.Datacenter + "/" + w.Rack
		if seen[rack] {
			continue
		}
		seen[rack] = true
		limit := w.Pod.Resources.Limits[corev1.ResourceMemory]
		for _, problem := range config.Validate(&w.Configuration, limit.Value()) {
			if words := problem.String(); !said[words] {
				said[words] = true
				errs = append(errs, fmt.Errorf("rack %s: %s", rack, words))
			}
		}
	}
	return errors.Join(errs...)
}

func (p *pass) checkSpec() error {
	spec := p.Cluster.Spec
	rings := map[string]string{}
	for i := range spec.Datacenters {
		dc := &spec.Datacenters[i]
		name := render.DatacenterName(dc)
		if other, taken := rings[name]; taken {
			return fmt.Errorf("datacenters %s and %s have the same datacenterName %q", other, dc.Name, name)
		}
		rings[name] = dc.Name
	}
	if spec.AdoptedUID() != "" && spec.AdoptedUID() == p.Cluster.UID {
		return fmt.Errorf("bootstrap.adopt.clusterUID is %q, the uid of this cluster itself: it must be that of an earlier one", spec.AdoptedUID())
	}
	for i, w := range p.wanted {
		if i > 0 && w.Datacenter == p.wanted[i-1].Datacenter && w.Rack == p.wanted[i-1].Rack {
			continue // the nodes of a rack differ in nothing but their names
		}
		if claims := w.Pod.Storage.Claims; claims == nil || claims.Data == nil {
			return fmt.Errorf("node.storage.claims.data.size is not set for datacenter %s: say how large the volume of each node is", w.Datacenter)
		}
		for _, v := range render.Volumes(w.Pod) {
			if v.Claim.Size == nil {
				return fmt.Errorf("node.storage.claims.%s.size is not set for datacenter %s: say how large the volume of each node is", volumeField(v.Name), w.Datacenter)
			}
		}
		record := render.Record(p.owner(), w, nil, "")
		if _, err := render.Pod(p.owner(), record, p.Install); err != nil {
			return err
		}
	}
	return nil
}

// volumeField is the field of node.storage.claims that describes a volume.
func volumeField(volume string) string {
	switch volume {
	case v1alpha1.VolumeData, v1alpha1.VolumeCommitlog:
		return volume
	default:
		return "additional[" + volume + "]"
	}
}

// checkChange refuses changes to a ring that exists. Before its first ticket a cluster follows every change of the spec, and a node that is not in the
// ring follows corrections after that.
func (p *pass) checkChange() error {
	if !p.begun() {
		return nil
	}
	return errors.Join(p.checkNodes(), p.checkNumbers(), p.checkLedger())
}

// checkNodes compares every record with what the spec describes, and sorts the differences into corrections and refusals.
func (p *pass) checkNodes() error {
	var errs []error
	refused := map[string][]string{}
	for _, w := range p.wanted {
		n := p.Nodes[w.Name]
		if recordOf(n) == nil || n.Record.DeletionTimestamp != nil {
			continue
		}
		switch w = render.Pinned(p.Cluster, w, n.Record); {
		case p.compared.Same(n, w):
		case p.correctable(n, w):
			p.corrections = append(p.corrections, correction{n, w})
		default:
			if claim := p.boundClaim(n, w); claim != "" && !p.started(n) {
				errs = append(errs, fmt.Errorf("node.storage: claim %s of node %s, which is to join, is bound to a volume, and that does not change; take the change back, or delete the claim and its "+
					"pod so that both are made anew", claim, n.Name))
			} else {
				for _, d := range render.Differences(n.Record, w) {
					refused[d.String()] = append(refused[d.String()], n.Name)
				}
			}
		}
	}
	var words []string
	for _, d := range sortedKeys(refused) {
		words = append(words, fmt.Sprintf("%s (node %s)", d, list(refused[d], 3)))
	}
	if len(words) > 0 {
		errs = append(errs, fmt.Errorf("%s: changing the nodes of a ring is not supported yet; take the change back", list(words, 5)))
	}
	return errors.Join(errs...)
}

// checkNumbers refuses nodes more than the ring can grow by, and fewer than it has. Those without any part in the ring can go.
func (p *pass) checkNumbers() error {
	wanted := map[string]bool{}
	var early, fewer []string
	for _, w := range p.wanted {
		wanted[w.Name] = true
		switch {
		case p.belongs(w.Name):
		case !p.settled():
			early = append(early, w.Name)
		}
	}
	for _, n := range p.Records() {
		switch {
		case wanted[n.Name]:
		case p.settled() && p.outside(n):
			p.leavers = append(p.leavers, n.Name)
		case p.givesUp(n.Name):
		default:
			fewer = append(fewer, n.Name)
		}
	}
	switch {
	case len(early) > 0:
		return fmt.Errorf("the spec has %s that the ring does not have (%s): a ring grows when it has formed; take the change back until then", plural(len(early), "node"), list(early, 3))
	case len(fewer) > 0:
		return fmt.Errorf("the spec lacks %s of the ring (%s): shrinking a ring is not supported yet; take the change back", plural(len(fewer), "node"), list(fewer, 3))
	}
	return nil
}

// checkLedger refuses changes of what no record holds, and what was used up when the ring was formed.
func (p *pass) checkLedger() error {
	var errs []error
	for i := range p.Cluster.Spec.Datacenters {
		dc := &p.Cluster.Spec.Datacenters[i]
		if have, known := p.Ledger.Replication[dc.Name]; known && (have > dc.PlannedReplicationFactor || have != dc.PlannedReplicationFactor && !p.settled()) {
			errs = append(errs, fmt.Errorf("datacenters[%s].plannedReplicationFactor: %d → %d: the tokens and the system keyspaces were made for the old one, which can be raised once the ring "+
				"has formed and is never lowered; take the change back. Keyspaces of your own can have any number of replicas", dc.Name, have, dc.PlannedReplicationFactor))
		}
	}
	if adopt := p.Cluster.Spec.AdoptedUID(); adopt != p.Ledger.Adopted {
		errs = append(errs, fmt.Errorf("bootstrap.adopt.clusterUID: %q → %q: a ring that exists cannot take over the disks of another cluster; take the change back", p.Ledger.Adopted, adopt))
	}
	return errors.Join(errs...)
}

// begun says that tickets are out, or were: from then on nodes cannot come and go freely.
func (p *pass) begun() bool {
	return p.Ledger != nil && (p.Ledger.Step != nil || len(p.Ledger.Formed) > 0)
}

// settled says that the ring stands and is not being formed any more: then it can grow.
func (p *pass) settled() bool {
	s := p.Ledger.Step
	return p.formed() && (s == nil || s.Kind != ledger.FormRing && s.Kind != ledger.AdoptRing)
}

// outside says that a node has no part in the ring: no ticket that counts, and nobody's word that it has joined.
func (p *pass) outside(n *facts.Node) bool {
	return !p.ticketed(n.Name) && !p.joined(n) && (n.Record.Spec.Join == nil || gaveBack(n) || n.Record.Spec.Join.Withdraw != nil)
}

// givesUp says that the ticket of a node is being taken back, or that its join goes on because it has joined already.
func (p *pass) givesUp(name string) bool {
	s := p.Ledger.Step
	if s == nil || s.Kind != ledger.JoinNode && s.Kind != ledger.AddDatacenter || s.Stage != ledger.StageTickets {
		return false
	}
	return p.ticketed(name)
}

// ticketed says that the open step has a ticket for a node, or had: one that was withdrawn is left behind, which is written down only at the step's end.
func (p *pass) ticketed(name string) bool {
	if p.Ledger.Step == nil {
		return false
	}
	_, ticket := p.Ledger.Step.Tickets[name]
	return ticket
}

// belongs says that a node is one of the ring's, or was one of those that should have formed it.
func (p *pass) belongs(name string) bool {
	if n := p.Nodes[name]; n != nil && n.Record != nil {
		return true
	}
	if _, member := p.Ledger.Members[name]; member || slices.Contains(p.Ledger.LeftBehind, name) {
		return true
	}
	return p.ticketed(name)
}

// formed says that the cluster has a ring.
func (p *pass) formed() bool { return p.Ledger.HasRing() }
