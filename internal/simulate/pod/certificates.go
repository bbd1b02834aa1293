package pod

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/pki"
)

// certificates is execute.Certificates: the Secrets as the kubelet mounts them.
type certificates struct{ s *Sandbox }

// Given reads a Secret. What the kubelet has mounted stays while it does not reach the API server.
func (c certificates) Given(use v1alpha1.CertificateUse) (leaf pki.Pair, bundle []byte, err error) {
	if c.s.rt.APIReachable(c.s.host) {
		secret := &corev1.Secret{}
		if err := c.s.rt.Observer.Get(context.Background(), client.ObjectKey{Namespace: c.s.pod.Namespace,
			Name: v1alpha1.CertificateName(c.s.pod.Name, use)}, secret); err == nil {
			c.s.mounted[use] = secret.Data
		}
	}
	data, there := c.s.mounted[use]
	if !there {
		return leaf, nil, fmt.Errorf("read certificate: Secret %s is not mounted",
			v1alpha1.CertificateName(c.s.pod.Name, use))
	}
	return pki.Pair{Certificate: data[pki.KeyCertificate], Key: data[pki.KeyPrivateKey]}, data[pki.KeyBundle], nil
}

// Served is what the JVM shows.
func (c certificates) Served(_ context.Context, use v1alpha1.CertificateUse, _ pki.Pair, _ []byte) (*x509.Certificate,
	error) {
	if c.s.jvm == nil || c.s.jvm.Certificate(use) == nil {
		return nil, errors.New("shake hands with Cassandra: connection refused")
	}
	return c.s.jvm.Certificate(use), nil
}
