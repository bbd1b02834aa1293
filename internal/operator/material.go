package operator

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/pki"
)

// authorities signs the operator's own certificates, one for each cluster, with the authority of
// that cluster. They are kept in memory alone.
type authorities struct {
	secrets client.Reader
	now     func() time.Time

	mutex sync.Mutex
	known map[types.UID]*signed
}

type signed struct {
	// by is the version of the authority's Secret.
	by       string
	material *pki.Material
	renew    time.Time
}

// source gives the operator's certificate towards one cluster, signed again when the authority
// changes or two thirds of its life are over.
func (a *authorities) source(cluster types.NamespacedName, uid types.UID) pki.Source {
	return func() (*pki.Material, error) {
		secret := &corev1.Secret{}
		key := types.NamespacedName{Namespace: cluster.Namespace,
			Name: v1alpha1.AuthorityName(cluster.Name, v1alpha1.UseAgent)}
		if err := a.secrets.Get(context.Background(), key, secret); err != nil {
			return nil, fmt.Errorf("read certificate authority: %w", err)
		}
		if of := secret.Labels[v1alpha1.LabelClusterUID]; of != string(uid) {
			return nil, fmt.Errorf("read certificate authority: Secret %s is of the cluster with uid %s, not %s",
				key.Name, of, uid)
		}
		a.mutex.Lock()
		defer a.mutex.Unlock()
		if s := a.known[uid]; s != nil && s.by == secret.ResourceVersion && a.now().Before(s.renew) {
			return s.material, nil
		}
		s, err := a.sign(secret, uid)
		if err != nil {
			return nil, err
		}
		if a.known == nil {
			a.known = map[types.UID]*signed{}
		}
		a.known[uid] = s
		return s.material, nil
	}
}

func (a *authorities) sign(secret *corev1.Secret, uid types.UID) (*signed, error) {
	authority, err := pki.ParseAuthority(pki.Pair{Certificate: secret.Data[pki.KeyCertificate],
		Key: secret.Data[pki.KeyPrivateKey]})
	if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", secret.Name, err)
	}
	leaf, err := authority.Issue(pki.OperatorOf(uid), a.now())
	if err != nil {
		return nil, err
	}
	material, err := pki.NewMaterial(leaf, secret.Data[pki.KeyBundle])
	if err != nil {
		return nil, fmt.Errorf("use Secret %s: %w", secret.Name, err)
	}
	return &signed{by: secret.ResourceVersion, material: material, renew: pki.RenewAt(material.Leaf())}, nil
}
