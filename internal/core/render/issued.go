package render

import (
	"cmp"
	"fmt"
	"net/netip"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"helenus.io/helenus/api/v1alpha1"
)

// CertificateKind is a kind of cert-manager, which Kubernetes may not have.
var CertificateKind = schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"}

// shortestIssued is what cert-manager takes at least.
const shortestIssued = time.Hour

// IssuerKind is that of an issuer.
func IssuerKind(of *v1alpha1.CertificateIssuer) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: cmp.Or(of.Group, CertificateKind.Group), Version: CertificateKind.Version,
		Kind: cmp.Or(of.Kind, "Issuer")}
}

// Issued has cert-manager sign what a node shows to clients, with the names and the address by
// which they reach it, or what it shows to other nodes, which look at no names.
func Issued(cluster *v1alpha1.CassandraCluster, use v1alpha1.CertificateUse, record *v1alpha1.CassandraNode,
	address string) *unstructured.Unstructured {
	owner, issuer, name := OwnerOf(cluster), cluster.Spec.Issuer(use), v1alpha1.IssuedName(record.Name, use)
	metadata := &metav1.PartialObjectMetadata{ObjectMeta: owner.meta(name, string(use))}
	metadata.SetGroupVersionKind(CertificateKind)
	metadata.OwnerReferences = RecordReference(record)
	metadata.Labels[v1alpha1.LabelNode] = record.Name
	whole, err := runtime.DefaultUnstructuredConverter.ToUnstructured(metadata)
	if err != nil {
		panic(fmt.Sprintf("convert metadata: %v", err)) // only texts: cannot happen
	}
	life, kind := max(cluster.Spec.CertificateLifetime(), shortestIssued), IssuerKind(issuer)
	spec := map[string]any{
		"secretName":  name,
		"issuerRef":   map[string]any{"name": issuer.Name, "kind": kind.Kind, "group": kind.Group},
		"dnsNames":    []any{record.Name},
		"duration":    life.String(),
		"renewBefore": (life / 3).String(),
		"usages":      []any{"digital signature", "server auth", "client auth"},
		"privateKey": map[string]any{"algorithm": "ECDSA", "size": int64(256), "encoding": "PKCS8",
			"rotationPolicy": "Always"},
	}
	if use == v1alpha1.UseClients {
		names, addresses := []any{}, []any{"127.0.0.1", "::1"}
		for _, name := range ClientNames(owner, record) {
			names = append(names, name)
		}
		if _, err := netip.ParseAddr(address); err == nil {
			addresses = append(addresses, address)
		}
		spec["dnsNames"], spec["ipAddresses"] = names, addresses
	}
	whole["spec"] = spec
	return &unstructured.Unstructured{Object: whole}
}
