package cluster

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/render"
)

// sharedObjects are those that a cluster has beside its nodes: services, the agents' account and rights, the certificate authority, disruption budgets.
// What somebody edited or deleted is put back. Later steps need not wait: writes are carried out in order.
func sharedObjects(p *pass) result {
	before := len(p.plan.Writes)
	o := p.owner()
	if authority := render.CertificateSecret(o, nil); p.Shared.Secrets[authority.Name] == nil {
		p.write(Write{Verb: IssueAuthority, Object: authority})
	}
	ensure(p, p.Shared.ServiceAccounts, render.AgentServiceAccount(o), sameAccount)
	ensure(p, p.Shared.Roles, render.AgentRole(o), sameRole)
	ensure(p, p.Shared.RoleBindings, render.AgentRoleBinding(o), sameBinding)
	ensure(p, p.Shared.Services, render.NodesService(o), sameService)
	for _, dc := range p.datacenters() {
		ensure(p, p.Shared.Services, render.ClientService(o, dc), sameService)
		ensure(p, p.Shared.Budgets, render.Budget(o, dc, p.minAvailable(dc)), sameBudget)
	}
	if n := len(p.plan.Writes) - before; n > 0 {
		return result{outcome: Done, message: plural(n, "object") + " to put right"}
	}
	return done()
}

// ensure creates an object that is missing and applies one that differs.
func ensure[T any, P interface {
	*T
	Object
}](p *pass, existing map[string]P, want P, same func(have, want P) bool) {
	have, ok := existing[want.GetName()]
	switch {
	case !ok:
		p.write(Write{Verb: Create, Object: want})
	case !sameMeta(have, want) || !same(have, want):
		p.write(Write{Verb: Apply, Object: want, UID: have.GetUID(), Why: "it is not what it should be"})
	}
}

// sameMeta says that an object carries at least our labels, and exactly our owner.
func sameMeta(have, want Object) bool {
	for key, value := range want.GetLabels() {
		if have.GetLabels()[key] != value {
			return false
		}
	}
	return equality.Semantic.DeepEqual(have.GetOwnerReferences(), want.GetOwnerReferences())
}

func sameAccount(have, want *corev1.ServiceAccount) bool {
	return equality.Semantic.DeepEqual(have.AutomountServiceAccountToken, want.AutomountServiceAccountToken)
}

func sameRole(have, want *rbacv1.Role) bool {
	return equality.Semantic.DeepEqual(have.Rules, want.Rules)
}

func sameBinding(have, want *rbacv1.RoleBinding) bool {
	return equality.Semantic.DeepEqual(have.Subjects, want.Subjects) && have.RoleRef == want.RoleRef
}

func sameService(have, want *corev1.Service) bool {
	return maps.Equal(have.Spec.Selector, want.Spec.Selector) && have.Spec.PublishNotReadyAddresses == want.Spec.PublishNotReadyAddresses &&
		equality.Semantic.DeepEqual(have.Spec.Ports, want.Spec.Ports)
}

func sameBudget(have, want *policyv1.PodDisruptionBudget) bool {
	return equality.Semantic.DeepEqual(have.Spec.MinAvailable, want.Spec.MinAvailable) &&
		equality.Semantic.DeepEqual(have.Spec.Selector, want.Spec.Selector)
}

// datacenters are those that are described, in the order of the spec, and those that exist beside them, by name.
func (p *pass) datacenters() []string {
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if !p.held {
		for _, w := range p.wanted {
			add(w.Datacenter)
		}
	}
	for _, n := range p.Records() {
		add(n.Record.Spec.Datacenter)
	}
	return names
}

// minAvailable is how many pods of a datacenter an eviction must leave: all but one of its members, and every one of them while a step is open or none
// is a member yet. A member counts whether its record or its pod is there just now or not.
func (p *pass) minAvailable(datacenter string) int {
	members := 0
	for name := range p.Ledger.Members {
		if p.datacenterOf(name) == datacenter {
			members++
		}
	}
	if members > 0 && p.Ledger.Step == nil && !p.lost {
		return members - 1
	}
	names := map[string]bool{}
	for name, n := range p.Nodes {
		if (n.Record != nil || n.Pod != nil) && p.datacenterOf(name) == datacenter {
			names[name] = true
		}
	}
	if !p.begun() && !p.held {
		for _, w := range p.wanted {
			if w.Datacenter == datacenter {
				names[w.Name] = true
			}
		}
	}
	return len(names)
}

// datacenterOf a node by its record, else by its pod, else by the spec; empty if none of them has it.
func (p *pass) datacenterOf(name string) string {
	switch n := p.Nodes[name]; {
	case recordOf(n) != nil:
		return n.Record.Spec.Datacenter
	case n != nil && n.Pod != nil:
		return n.Pod.Labels[v1alpha1.LabelDatacenter]
	}
	for _, w := range p.wanted {
		if w.Name == name {
			return w.Datacenter
		}
	}
	return ""
}
