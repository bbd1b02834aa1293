package observe

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/pki"
)

// SecretsFor is how long a Secret that was read is believed to be as it was. One that somebody
// deletes is missed after that time at the latest.
const SecretsFor = 10 * time.Minute

// pendingSecretsFor is the same for a node whose pod does not run: a Secret that is missing may be
// what it waits for.
const pendingSecretsFor = 30 * time.Second

// superuserFor is the same for the Secret of the superuser: a password that somebody changes there
// is applied after that time at the latest, if the Lookout does not find it before. While it is
// being applied, it is read as often as every applyingFor.
const (
	superuserFor = time.Minute
	applyingFor  = 5 * time.Second
)

// secrets reads the Secrets of clusters by name. The operator may neither list nor watch Secrets,
// so that it cannot see those of others; what it read is kept for a while instead.
type secrets struct {
	mutex sync.Mutex
	// known by cluster and name.
	known map[types.NamespacedName]map[string]known
}

type known struct {
	secret *corev1.Secret // nil if there was none
	at     time.Time
	// edited says that its content was not what we had put into it.
	edited bool
	// trust is what its certificates say, which are no secret.
	trust facts.Trust
	// problem is what is wrong with it as a Secret of the user.
	problem string
	// content is the hash of a certificate of his own.
	content string
	// certificate by which cert-manager signs; secret is nil then.
	certificate *unstructured.Unstructured
	// user name, digest of it and the password, and whether there is one before, of a superuser.
	user   string
	digest [sha256.Size]byte
	old    bool
}

// read puts the Secrets of a cluster and of its records among its objects: from memory, or from the
// API server if they are not known, were missing, are old, or were just written by us.
func (s *secrets) read(ctx context.Context, live client.Reader, now time.Time, snapshot *facts.Snapshot,
	o *objects, store *consistency.Store) error {
	cluster := snapshot.Cluster
	pending := map[string]bool{}
	for i := range o.pods.Items {
		pending[o.pods.Items[i].Name] = o.pods.Items[i].Status.Phase == corev1.PodPending
	}
	snapshot.Trust, snapshot.Given = map[string]facts.Trust{}, map[string]facts.Given{}
	snapshot.NoIssuer = map[v1alpha1.CertificateUse]string{}
	read := func(name string, owner types.UID, believed time.Duration) error {
		if store.Pending(consistency.Key{Kind: "Secret", Namespace: cluster.Namespace, Name: name}) {
			believed = 0
		}
		k, err := s.get(ctx, live, now, client.ObjectKeyFromObject(cluster), name, owner, believed, nil)
		// One without our label, or our owner, is somebody else's, and is looked for among those.
		if err == nil && k.secret != nil && (k.secret.Labels[v1alpha1.LabelCluster] == cluster.Name ||
			facts.Owned(k.secret, string(owner))) {
			o.secrets = append(o.secrets, *k.secret)
			o.edited[name] = k.edited
			snapshot.Trust[name] = k.trust
		}
		return err
	}
	for _, use := range []v1alpha1.CertificateUse{v1alpha1.UseAgent, v1alpha1.UseInternode, v1alpha1.UseClients} {
		if use != v1alpha1.UseAgent && !snapshot.MayEncrypt(use) {
			continue
		}
		authority := v1alpha1.AuthorityName(cluster.Name, use)
		if cluster.Spec.HasOwn(use) || cluster.Spec.Issuer(use) != nil {
			if err := s.readGiven(ctx, live, now, snapshot, use, o); err != nil {
				return err
			}
		}
		if !cluster.Spec.HasOwn(use) { // else the authority, which may be there, is nobody's
			if err := read(authority, cluster.UID, SecretsFor); err != nil {
				return err
			}
		}
		for i := range o.records.Items {
			believed := SecretsFor
			if pending[o.records.Items[i].Name] {
				believed = pendingSecretsFor
			}
			if err := read(v1alpha1.CertificateName(o.records.Items[i].Name, use), o.records.Items[i].UID,
				believed); err != nil {
				return err
			}
			if use != v1alpha1.UseAgent && cluster.Spec.Issuer(use) == nil {
				name := v1alpha1.IssuedName(o.records.Items[i].Name, use)
				if err := s.leftIssued(ctx, live, snapshot, name, o.secrets); err != nil {
					return err
				}
			}
		}
	}
	each(o, "Secret", o.secrets)
	return nil
}

// readPasswords reads the Secrets of the ring's roles, if it has any or is to. They have no owner:
// those of an earlier cluster are those of its disks.
func (s *secrets) readPasswords(ctx context.Context, live client.Reader, now time.Time, snapshot *facts.Snapshot,
	o *objects, store *consistency.Store) error {
	cluster := snapshot.Cluster
	if !snapshot.AsksForPasswords() && (snapshot.Ledger == nil || snapshot.Ledger.Authentication == nil) {
		return nil
	}
	made := snapshot.Ledger != nil && snapshot.Ledger.MadeWith != nil
	believed := pendingSecretsFor
	if made {
		believed = SecretsFor
	}
	read := func(name string, given bool) (known, error) {
		if store.Pending(consistency.Key{Kind: "Secret", Namespace: cluster.Namespace, Name: name}) {
			believed = 0
		}
		k, err := s.get(ctx, live, now, client.ObjectKeyFromObject(cluster), name, "", believed, judgeSuperuser)
		if err != nil || k.secret == nil || given {
			return k, err
		}
		if !made && !render.MadeFor(render.OwnerOf(cluster), k.secret) {
			snapshot.Foreign = append(snapshot.Foreign, facts.ObjectName{Kind: "Secret", Name: name})
			return known{}, nil
		}
		o.add("Secret", k.secret)
		return k, nil
	}
	roles, err := read(v1alpha1.RolesName(cluster.Name), false)
	if err != nil {
		return err
	}
	snapshot.Passwords.Roles = roles.secret
	name := snapshot.SuperuserSecret()
	given := name == cluster.Spec.NamedSuperuser() || name != v1alpha1.SuperuserName(cluster.Name)
	if made {
		believed = superuserFor
	}
	if slices.ContainsFunc(snapshot.Ledger.Open(), func(s *ledger.Step) bool { return s.Kind == ledger.Rotate }) {
		believed = applyingFor
	}
	superuser, err := read(name, given)
	if err != nil {
		return err
	}
	p := &snapshot.Passwords
	if err := s.readApplications(ctx, live, now, snapshot); err != nil {
		return err
	}
	applied, err := read(v1alpha1.AppliedSuperuserName(cluster.Name), false)
	p.Superuser, p.Problem, p.Applied, p.Old = superuser.secret, superuser.problem, applied.secret, applied.old
	if p.Superuser != nil && p.Applied != nil {
		if p.Changed = superuser.digest != applied.digest; superuser.user != applied.user {
			p.Renamed = applied.user
		}
	}
	return err
}

// readApplications reads the Secrets of the roles of applications, which are the user's.
func (s *secrets) readApplications(ctx context.Context, live client.Reader, now time.Time,
	snapshot *facts.Snapshot) error {
	snapshot.Passwords.Applications = map[string]facts.ApplicationSecret{}
	for _, role := range snapshot.Cluster.Spec.ApplicationRoles() {
		k, err := s.get(ctx, live, now, client.ObjectKeyFromObject(snapshot.Cluster), role.SecretName, "", superuserFor,
			func(secret *corev1.Secret, k *known) {
				k.user, k.problem = string(secret.Data[corev1.BasicAuthUsernameKey]), render.PasswordProblem(secret)
			})
		of := facts.ApplicationSecret{Problem: k.problem}
		switch {
		case err != nil:
			return err
		case k.secret == nil:
			of.Problem = "does not exist: create it, of type kubernetes.io/basic-auth, with a password"
		case k.problem != "":
		case k.user != "" && k.user != role.Name:
			of.Problem = fmt.Sprintf("has the username %q: it must have that of the role, or none", k.user)
		default:
			of.Version = k.secret.ResourceVersion
		}
		snapshot.Passwords.Applications[role.Name] = of
	}
	return nil
}

func (s *secrets) get(
	ctx context.Context, live client.Reader, now time.Time, cluster types.NamespacedName, name string, owner types.UID,
	believed time.Duration, judge func(*corev1.Secret, *known),
) (known, error) {
	s.mutex.Lock()
	k := s.known[cluster][name]
	s.mutex.Unlock()
	// One of an earlier cluster, or of a record that was recreated, is about to go with its owner.
	// What is wrong may have been put right.
	if k.secret != nil && (owner == "" && k.problem == "" || owner != "" && facts.Owned(k.secret, string(owner))) &&
		now.Sub(k.at) < believed {
		return k, nil
	}
	secret := &corev1.Secret{}
	err := live.Get(ctx, types.NamespacedName{Namespace: cluster.Namespace, Name: name}, secret)
	k = known{at: now}
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return known{}, fmt.Errorf("get Secret %s: %w", name, err)
	default:
		// A pass decides on its being there, on its labels, and on whether it is as we left it;
		// never on what is in it.
		k.secret, k.edited = secret, render.Edited(secret)
		k.trust = trustOf(secret)
		if judge != nil && name != v1alpha1.RolesName(cluster.Name) {
			judge(secret, &k)
		}
		secret.Data = nil
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.known == nil {
		s.known = map[types.NamespacedName]map[string]known{}
	}
	if s.known[cluster] == nil {
		s.known[cluster] = map[string]known{}
	}
	s.known[cluster][name] = k
	return k, nil
}

func judgeSuperuser(secret *corev1.Secret, k *known) {
	k.problem = render.SuperuserProblem(secret)
	k.user = string(secret.Data[corev1.BasicAuthUsernameKey])
	k.digest = sha256.Sum256(append([]byte(k.user+"\x00"), secret.Data[corev1.BasicAuthPasswordKey]...))
	_, k.old = secret.Data[v1alpha1.KeyOldPassword]
}

// trustOf is what the certificates in a Secret say; nothing if they cannot be read.
func trustOf(secret *corev1.Secret) facts.Trust {
	bundle, err := pki.ParseCertificates(secret.Data[pki.KeyBundle])
	own, ownErr := pki.ParseCertificates(secret.Data[pki.KeyCertificate])
	if err != nil || ownErr != nil {
		return facts.Trust{}
	}
	out := facts.Trust{MadeAt: pki.IssuedAt(own[0]), Bundle: string(secret.Data[pki.KeyBundle])}
	for _, a := range bundle {
		out.Trusted = append(out.Trusted, facts.Authority{Fingerprint: pki.Fingerprint(a), MadeAt: pki.IssuedAt(a),
			RenewAt: pki.RenewAt(a), EndsAt: a.NotAfter})
	}
	if by := pki.SignedBy(own, bundle); by != nil {
		out.Signer = pki.Fingerprint(by)
	}
	out.Given = len(secret.Data[pki.KeyPrivateKey]) == 0
	if next, err := pki.ParseCertificates(secret.Data[pki.KeyNextCertificate]); err == nil {
		out.Next, out.NextGiven = pki.Fingerprint(next[0]), len(secret.Data[pki.KeyNextKey]) == 0
	}
	if at, err := time.Parse(time.RFC3339, secret.Annotations[v1alpha1.AnnotationSince]); err == nil {
		out.MadeAt = at // of a copy: when it was made
	}
	return out
}

// ofPeople are the versions of the Secrets of a cluster that people change, as they were read last.
func (s *secrets) ofPeople(snapshot *facts.Snapshot) map[string]string {
	spec, key := &snapshot.Cluster.Spec, client.ObjectKeyFromObject(snapshot.Cluster)
	names := []string{snapshot.SuperuserSecret(), spec.ClientsSecret()}
	for _, role := range spec.ApplicationRoles() {
		names = append(names, role.SecretName)
	}
	out := map[string]string{}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, name := range names {
		if k, ok := s.known[key][name]; ok {
			out[name] = ""
			if k.secret != nil {
				out[name] = k.secret.ResourceVersion
			}
		}
	}
	return out
}

// drop has a Secret read again.
func (s *secrets) drop(cluster types.NamespacedName, name string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.known[cluster], name)
}

func (s *secrets) forget(cluster types.NamespacedName) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.known, cluster)
}
