package apiserver

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Services are headless or have one address of their own, as those of Helenus. Node ports, load
// balancers, external names and two families of addresses are no part of this server.

// firstAddress of the range of services, which belongs to the server itself.
var firstAddress = netip.MustParseAddr("10.96.0.1")

func serviceRules() rules {
	r := specAndStatus()
	r.createOnUpdate = true
	r.fields = func(object client.Object) map[string]string {
		s := object.(*corev1.Service)
		return map[string]string{"spec.clusterIP": s.Spec.ClusterIP, "spec.type": string(s.Spec.Type)}
	}
	r.defaults = func(object client.Object) { defaultService(&object.(*corev1.Service).Spec) }
	r.begin = func(w *writing, object, old client.Object) error {
		service := object.(*corev1.Service)
		if old != nil {
			keepAddress(&service.Spec, &old.(*corev1.Service).Spec)
		} else if service.Spec.ClusterIP != "" && len(service.Spec.ClusterIPs) == 0 {
			service.Spec.ClusterIPs = []string{service.Spec.ClusterIP}
		}
		return w.giveAddress(service, old == nil)
	}
	r.prepareCreate = func(object client.Object) { object.(*corev1.Service).Status = corev1.ServiceStatus{} }
	prepare := r.prepareUpdate
	r.prepareUpdate = func(object, old client.Object) {
		prepare(object, old)
		object.(*corev1.Service).Status.LoadBalancer = corev1.LoadBalancerStatus{}
	}
	r.validate = func(object client.Object) field.ErrorList {
		return validService(&object.(*corev1.Service).Spec, field.NewPath("spec"))
	}
	r.validateUpdate = func(object, old client.Object) field.ErrorList {
		return validAddressUpdate(&object.(*corev1.Service).Spec, &old.(*corev1.Service).Spec)
	}
	r.validateStatus = func(object, _ client.Object) field.ErrorList {
		if ingress := object.(*corev1.Service).Status.LoadBalancer.Ingress; len(ingress) > 0 {
			return field.ErrorList{field.Forbidden(field.NewPath("status", "loadBalancer", "ingress"),
				"may only be used when `spec.type` is \"LoadBalancer\"")}
		}
		return nil
	}
	return r
}

func defaultService(spec *corev1.ServiceSpec) {
	if spec.SessionAffinity == "" {
		spec.SessionAffinity = corev1.ServiceAffinityNone
	}
	switch spec.SessionAffinity {
	case corev1.ServiceAffinityNone:
		spec.SessionAffinityConfig = nil
	case corev1.ServiceAffinityClientIP:
		if c := spec.SessionAffinityConfig; c == nil || c.ClientIP == nil || c.ClientIP.TimeoutSeconds == nil {
			seconds := corev1.DefaultClientIPServiceAffinitySeconds
			spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{
				ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &seconds},
			}
		}
	}
	if spec.Type == "" {
		spec.Type = corev1.ServiceTypeClusterIP
	}
	for i := range spec.Ports {
		p := &spec.Ports[i]
		if p.Protocol == "" {
			p.Protocol = corev1.ProtocolTCP
		}
		if p.TargetPort == intstr.FromInt32(0) || p.TargetPort == intstr.FromString("") {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	if spec.InternalTrafficPolicy == nil && spec.Type == corev1.ServiceTypeClusterIP {
		policy := corev1.ServiceInternalTrafficPolicyCluster
		spec.InternalTrafficPolicy = &policy
	}
}

// keepAddress fills in what an update leaves out of the addresses, and has the two fields for them
// say the same if one of them was changed.
func keepAddress(now, before *corev1.ServiceSpec) {
	if now.ClusterIP == "" {
		now.ClusterIP = before.ClusterIP
	}
	if len(now.ClusterIPs) == 0 {
		now.ClusterIPs = before.ClusterIPs
	}
	if now.ClusterIP != before.ClusterIP && slices.Equal(now.ClusterIPs, before.ClusterIPs) {
		now.ClusterIPs = []string{now.ClusterIP}
	}
	if now.IPFamilyPolicy == nil {
		now.IPFamilyPolicy = before.IPFamilyPolicy
	}
}

// giveAddress gives a service its family and, if it is new and wants one, an address.
func (w *writing) giveAddress(service *corev1.Service, allocate bool) error {
	spec := &service.Spec
	refuse := func(errs ...*field.Error) error {
		return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), service.Name, errs)
	}
	// What has neither an address nor a selector may be of any family.
	open := spec.ClusterIP == corev1.ClusterIPNone && len(spec.Selector) == 0
	if spec.IPFamilyPolicy == nil {
		policy := corev1.IPFamilyPolicySingleStack
		if open {
			policy = corev1.IPFamilyPolicyRequireDualStack
		}
		spec.IPFamilyPolicy = &policy
	}
	if errs := validAddresses(spec, field.NewPath("spec")); len(errs) > 0 {
		return refuse(errs...)
	}
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	if open && len(spec.IPFamilies) == 1 && *spec.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack {
		spec.IPFamilies = append(spec.IPFamilies, corev1.IPv6Protocol)
	}
	if !open {
		var errs field.ErrorList
		if *spec.IPFamilyPolicy == corev1.IPFamilyPolicyRequireDualStack {
			errs = append(errs, field.Invalid(field.NewPath("spec", "ipFamilyPolicy"), *spec.IPFamilyPolicy,
				"this cluster is not configured for dual-stack services"))
		}
		for i, family := range spec.IPFamilies {
			if family != corev1.IPv4Protocol {
				errs = append(errs, field.Invalid(field.NewPath("spec", "ipFamilies").Index(i), family,
					"not configured on this cluster"))
			}
		}
		if len(errs) > 0 {
			return refuse(errs...)
		}
	}
	if !allocate || spec.ClusterIP == corev1.ClusterIPNone {
		return nil
	}
	taken := map[string]bool{firstAddress.String(): true}
	for _, other := range w.table(w.kind).objects {
		taken[other.object.(*corev1.Service).Spec.ClusterIP] = true
	}
	if spec.ClusterIP != "" {
		if taken[spec.ClusterIP] && !w.dryRun {
			return refuse(field.Invalid(field.NewPath("spec", "clusterIPs"), spec.ClusterIPs,
				fmt.Sprintf("failed to allocate IP %s: provided IP is already allocated", spec.ClusterIP)))
		}
		return nil
	}
	if w.dryRun {
		spec.ClusterIP, spec.ClusterIPs = firstAddress.String(), []string{firstAddress.String()}
		return nil
	}
	// No address is given twice, so that nobody takes one service for another.
	if !w.address.IsValid() {
		w.address = firstAddress
	}
	for taken[w.address.String()] {
		w.address = w.address.Next()
	}
	spec.ClusterIP, spec.ClusterIPs = w.address.String(), []string{w.address.String()}
	w.address = w.address.Next()
	return nil
}

func validAddresses(spec *corev1.ServiceSpec, at *field.Path) (errs field.ErrorList) {
	all := at.Child("clusterIPs")
	switch {
	case spec.ClusterIP != "" && spec.ClusterIPs[0] != spec.ClusterIP:
		errs = append(errs, field.Invalid(all, spec.ClusterIPs, "first value must match `clusterIP`"))
	case spec.ClusterIP == "" && len(spec.ClusterIPs) > 0:
		errs = append(errs, field.Invalid(all, spec.ClusterIPs, "must be empty when `clusterIP` is not specified"))
	}
	for i, address := range spec.ClusterIPs {
		if i == 0 && address == corev1.ClusterIPNone {
			continue
		}
		if _, err := netip.ParseAddr(address); err != nil {
			errs = append(errs, field.Invalid(all.Index(i), address,
				"must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"))
		}
	}
	return errs
}

func validAddressUpdate(now, before *corev1.ServiceSpec) field.ErrorList {
	if slices.Equal(now.ClusterIPs, before.ClusterIPs) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "clusterIPs").Index(0), now.ClusterIPs,
		"may not change once set")}
}

func validService(spec *corev1.ServiceSpec, at *field.Path) (errs field.ErrorList) {
	ports := at.Child("ports")
	if len(spec.Ports) == 0 && spec.ClusterIP != corev1.ClusterIPNone {
		errs = append(errs, field.Required(ports, ""))
	}
	names, used := map[string]bool{}, map[string]bool{}
	for i := range spec.Ports {
		p := &spec.Ports[i]
		errs = append(errs, validServicePort(p, len(spec.Ports) > 1, names, ports.Index(i))...)
		key := fmt.Sprintf("%s %d", p.Protocol, p.Port)
		if used[key] {
			errs = append(errs, field.Duplicate(ports.Index(i), key))
		}
		used[key] = true
	}
	errs = append(errs, metavalidation.ValidateLabels(spec.Selector, at.Child("selector"))...)
	if affinities := []corev1.ServiceAffinity{corev1.ServiceAffinityClientIP,
		corev1.ServiceAffinityNone}; !slices.Contains(affinities, spec.SessionAffinity) {
		errs = append(errs, field.NotSupported(at.Child("sessionAffinity"), spec.SessionAffinity, affinities))
	}
	errs = append(errs, validAddresses(spec, at)...)
	if spec.Type != corev1.ServiceTypeClusterIP {
		errs = append(errs, field.NotSupported(at.Child("type"), spec.Type,
			[]corev1.ServiceType{corev1.ServiceTypeClusterIP}))
	}
	return errs
}

func validServicePort(p *corev1.ServicePort, needsName bool, names map[string]bool,
	at *field.Path) (errs field.ErrorList) {
	switch {
	case p.Name == "" && needsName:
		errs = append(errs, field.Required(at.Child("name"), ""))
	case p.Name != "":
		for _, why := range utilvalidation.IsDNS1123Label(p.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), p.Name, why))
		}
		if names[p.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), p.Name))
		}
		names[p.Name] = true
	}
	for _, why := range utilvalidation.IsValidPortNum(int(p.Port)) {
		errs = append(errs, field.Invalid(at.Child("port"), p.Port, why))
	}
	if !slices.Contains(protocols, p.Protocol) {
		errs = append(errs, field.NotSupported(at.Child("protocol"), p.Protocol, protocols))
	}
	return append(errs, validPortOrName(p.TargetPort, at.Child("targetPort"))...)
}

var protocols = []corev1.Protocol{corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP}

func validPortOrName(port intstr.IntOrString, at *field.Path) (errs field.ErrorList) {
	whys := utilvalidation.IsValidPortNum(port.IntValue())
	if port.Type == intstr.String {
		whys = utilvalidation.IsValidPortName(port.StrVal)
	}
	for _, why := range whys {
		errs = append(errs, field.Invalid(at, port, why))
	}
	return errs
}
