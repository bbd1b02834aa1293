package apiserver

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// networkPolicyRules: a network policy has a generation, and no status.
func networkPolicyRules() rules {
	r := dataOnly()
	r.prepareCreate = func(object client.Object) { object.SetGeneration(1) }
	r.prepareUpdate = func(client.Object, client.Object) {}
	r.defaults = func(object client.Object) {
		spec := &object.(*networkingv1.NetworkPolicy).Spec
		for _, rule := range spec.Ingress {
			for i := range rule.Ports {
				if rule.Ports[i].Protocol == nil {
					tcp := corev1.ProtocolTCP
					rule.Ports[i].Protocol = &tcp
				}
			}
		}
		if len(spec.PolicyTypes) == 0 {
			spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		}
	}
	return counted(r)
}
