package upkeep

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// network keeps the network policy of the ring, or takes it away where the ring is to have none.
// While the spec describes none that can be, what is there stays.
func (k *Keeper) network() {
	k.noticeNotEnforced()
	if k.checkNetwork() != nil {
		return
	}
	if k.NetworkPolicy() == v1alpha1.NetworkPolicyManaged {
		ensure(k, k.Shared.NetworkPolicies, render.NetworkPolicy(k.Cluster, k.Install), repairPolicy, edited)
		return
	}
	have := k.Shared.NetworkPolicies[v1alpha1.NetworkPolicyName(k.Cluster.Name)]
	if have != nil && have.DeletionTimestamp == nil {
		k.draft.Write(plan.Write{Verb: plan.Delete, Object: plan.Named(have), UID: have.UID,
			Why: "security.networkPolicy.mode is None"})
	}
}

// noticeNotEnforced says that the network policy has no effect. What was said last stays while
// nothing is known, so that an operator that starts writes nothing.
func (k *Keeper) noticeNotEnforced() {
	reached := slices.ContainsFunc(k.Cluster.Status.Notices, func(n v1alpha1.Notice) bool {
		return n.Reason == v1alpha1.NoticeNetworkPolicyNotEnforced
	})
	if k.CQLReached != nil {
		reached = *k.CQLReached
	}
	if !reached || !k.CQLForbidden() {
		return
	}
	k.draft.Notice(v1alpha1.NoticeNetworkPolicyNotEnforced, nil, "the operator reaches CQL of a node, which "+
		"NetworkPolicy %s forbids to it: the network plugin of this Kubernetes does not enforce policies, so that "+
		"each pod reaches all ports of the ring; or another policy of the namespace allows it. Use a network plugin "+
		"that enforces NetworkPolicies, such as Calico or Cilium; or set security.networkPolicy.mode to None, if "+
		"something else protects the ring", v1alpha1.NetworkPolicyName(k.Cluster.Name))
}

func repairPolicy(now, want *networkingv1.NetworkPolicy) bool {
	now.Spec = want.Spec
	return true
}

// checkNetwork refuses peers that no API server takes in a NetworkPolicy, and those of a ring that
// would have no effect without a word.
func (k *Keeper) checkNetwork() error {
	spec := k.Cluster.Spec.NetworkPolicy()
	if spec.Mode == "" && k.NetworkPolicy() == v1alpha1.NetworkPolicyNone &&
		(spec.Clients != nil || len(spec.Metrics)+len(spec.External) > 0) {
		return errors.New("security.networkPolicy has clients, metrics or external without a mode, and the ring was " +
			"made without a network policy: set mode: Managed and it has one, or mode: None and it has none")
	}
	for _, list := range []struct {
		name  string
		peers []v1alpha1.NetworkPeer
	}{{"clients", spec.Clients}, {"metrics", spec.Metrics}, {"external", spec.External}} {
		for i, p := range list.peers {
			if err := checkPeer(p); err != nil {
				return fmt.Errorf("security.networkPolicy.%s[%d].%w", list.name, i, err)
			}
		}
	}
	return nil
}

func checkPeer(p v1alpha1.NetworkPeer) error {
	if _, err := metav1.LabelSelectorAsSelector(p.NamespaceSelector); err != nil {
		return fmt.Errorf("namespaceSelector: %w", err)
	}
	if _, err := metav1.LabelSelectorAsSelector(p.PodSelector); err != nil {
		return fmt.Errorf("podSelector: %w", err)
	}
	if p.IPBlock == nil {
		return nil
	}
	block, err := parseBlock(p.IPBlock.CIDR)
	if err != nil {
		return fmt.Errorf("ipBlock.cidr is %w", err)
	}
	for _, text := range p.IPBlock.Except {
		switch except, err := parseBlock(text); {
		case err != nil:
			return fmt.Errorf("ipBlock.except has %w", err)
		case except.Bits() <= block.Bits() || !block.Contains(except.Addr()):
			return fmt.Errorf("ipBlock.except has %s, which must be a part of %s", except, block)
		}
	}
	return nil
}

func parseBlock(text string) (netip.Prefix, error) {
	block, err := netip.ParsePrefix(text)
	if err != nil || block != block.Masked() {
		return block, fmt.Errorf("%q: it must be a block of addresses, such as 10.0.0.0/8 or 2001:db8::/32", text)
	}
	return block, nil
}
