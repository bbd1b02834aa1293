package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EncryptionMode is whether connections are encrypted.
//
// +kubebuilder:validation:Enum=Required;Optional;Disabled
type EncryptionMode string

const (
	// EncryptionRequired – plain connections are refused.
	EncryptionRequired EncryptionMode = "Required"
	// EncryptionOptional – plain connections are accepted, too.
	EncryptionOptional EncryptionMode = "Optional"
	// EncryptionDisabled – all connections are plain.
	EncryptionDisabled EncryptionMode = "Disabled"
)

// Encrypts says that encrypted connections are accepted.
func (m EncryptionMode) Encrypts() bool { return m == EncryptionRequired || m == EncryptionOptional }

// ClientCertificates is whether clients prove who they are by a certificate.
//
// +kubebuilder:validation:Enum=None;Required
type ClientCertificates string

const (
	// ClientCertificatesNone – clients show no certificate.
	ClientCertificatesNone ClientCertificates = "None"
	// ClientCertificatesRequired – clients show one that the authority of clients has signed.
	ClientCertificatesRequired ClientCertificates = "Required"
)

// CertificateUse is what a certificate authority of a cluster, and the certificates that it signs,
// are for.
//
// +kubebuilder:validation:Enum=agent;internode;clients
type CertificateUse string

const (
	// UseAgent is between the operator and the agents.
	UseAgent CertificateUse = "agent"
	// UseInternode is between the nodes of a ring.
	UseInternode CertificateUse = "internode"
	// UseClients is between nodes and clients.
	UseClients CertificateUse = "clients"
)

// DefaultCertificateLifetime is how long certificates of nodes are valid.
const DefaultCertificateLifetime = 90 * 24 * time.Hour

// DefaultClientsHold is how long clients have for each change of the authority.
const DefaultClientsHold = 7 * 24 * time.Hour

// Encryption says what is encrypted. How a ring was made is kept.
type Encryption struct {
	// Internode is the traffic between nodes.
	// +optional
	Internode *InternodeEncryption `json:"internode,omitempty"`

	// Clients are the connections of CQL.
	// +optional
	Clients *ClientEncryption `json:"clients,omitempty"`

	// Certificates are those of the nodes.
	// +optional
	Certificates *Certificates `json:"certificates,omitempty"`
}

// InternodeEncryption is how the traffic between nodes is encrypted.
type InternodeEncryption struct {
	// Mode: Required refuses nodes without a certificate of this cluster; Optional encrypts, and
	// accepts plain connections; Disabled does not encrypt. Default: Required for a new ring; one
	// that exists keeps what it was made with, and a ring that was made by an earlier release has
	// Disabled. A ring that exists gets there by passes over all nodes, of which each begins when
	// every node has the one before.
	// +optional
	Mode EncryptionMode `json:"mode,omitempty"`
}

// ClientEncryption is how the connections of CQL are encrypted.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.clientCertificates) || self.clientCertificates == 'None' || has(self.mode) && self.mode == 'Required'`,message=`security.encryption.clients.clientCertificates: Required needs mode: Required, since plain connections show no certificate`
type ClientEncryption struct {
	// Mode: Optional accepts encrypted and plain connections on port 9042; Required refuses plain
	// ones; Disabled accepts plain ones alone. Default: Optional for a new ring; one that exists
	// keeps what it was made with, and a ring that was made by an earlier release has Disabled. A
	// ring that exists gets there by passes over all nodes, and to Required when no client is
	// connected without encryption.
	// +optional
	Mode EncryptionMode `json:"mode,omitempty"`

	// ClientCertificates: Required refuses clients without a certificate that is signed by the
	// authority in the Secret <cluster>-clients-ca. Default: None for a new ring; one that exists
	// keeps what it was made with. Which clients have none cannot be seen beforehand.
	// +optional
	ClientCertificates ClientCertificates `json:"clientCertificates,omitempty"`
}

// Certificates are those of the nodes.
type Certificates struct {
	// Internode is whose certificates nodes show each other, and how the authority is replaced that
	// has signed them.
	// +optional
	Internode *InternodeAuthority `json:"internode,omitempty"`

	// Clients is whose certificates nodes show to clients, and how the authority is replaced that
	// has signed them.
	// +optional
	Clients *ClientsAuthority `json:"clients,omitempty"`

	// Lifetime of a certificate, which is replaced when two thirds of it are over. Default: 2160h,
	// which is 90 days. The next certificate of each node has it.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`duration(self) >= duration('10m') && duration(self) <= duration('87600h')`,message=`security.encryption.certificates.lifetime must be from 10m to 87600h (ten years)`
	Lifetime *metav1.Duration `json:"lifetime,omitempty"`
}

// InternodeAuthority is whose certificates nodes show each other, and how the certificate authority
// of the nodes of a ring is replaced.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.issuerRef) || !has(self.rotatedAt)`,message=`security.encryption.certificates.internode: rotatedAt replaces the authority that Helenus makes, and with issuerRef it is that of cert-manager: set one of them`
type InternodeAuthority struct {
	// IssuerRef has cert-manager sign a certificate for each node, by an Issuer of the namespace
	// whose authority is made for this ring alone: the ring takes all that show a certificate of it
	// for nodes. It must give its own certificate as ca.crt, as issuers of the types CA and Vault
	// do. A ring that exists changes from one authority to another in the stages of a replacement.
	// Default: Helenus makes the authority.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`!has(self.kind) || self.kind == 'Issuer'`,message=`security.encryption.certificates.internode.issuerRef.kind must be Issuer: every certificate of it makes a node of the ring, and a ClusterIssuer signs for every namespace`
	IssuerRef *CertificateIssuer `json:"issuerRef,omitempty"`

	// RotatedAt asks for another authority in place of one that was made before this time, such as
	// now. A time in the future is waited for. Without it an authority is replaced when two thirds
	// of its life, which is ten years, are over.
	// +optional
	RotatedAt *metav1.Time `json:"rotatedAt,omitempty"`
}

// ClientsAuthority is whose certificates nodes show to clients, and how the certificate authority
// by which clients know the nodes is replaced.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.secretName) || !has(self.rotatedAt)`,message=`security.encryption.certificates.clients: rotatedAt replaces the authority that Helenus makes, and secretName is a certificate of your own: set one of them`
// +kubebuilder:validation:XValidation:rule=`!has(self.issuerRef) || !has(self.secretName) && !has(self.rotatedAt)`,message=`security.encryption.certificates.clients: with issuerRef certificates come from cert-manager: secretName and rotatedAt must not be set`
type ClientsAuthority struct {
	// SecretName is a Secret of your own with the certificate that all nodes show to clients: its
	// tls.crt with intermediate certificates behind it, its tls.key, and in ca.crt the authorities
	// by which clients know the nodes, and nodes the certificates of clients. Helenus copies it
	// into the Secret of each node, looks at it every few seconds, and never writes it. What is
	// wrong with it is refused, and nodes keep what they have. Default: Helenus signs a certificate
	// for each node.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')`,messageExpression=`'security.encryption.certificates.clients.secretName "' + self + '" must be the name of a Secret: lower-case letters, digits, hyphens and dots'`
	SecretName string `json:"secretName,omitempty"`

	// IssuerRef has cert-manager sign a certificate for each node, by an Issuer of the namespace or
	// a ClusterIssuer. It must sign for IP addresses and for names of Services, and give its own
	// certificate as ca.crt, as issuers of the types CA and Vault do.
	// +optional
	IssuerRef *CertificateIssuer `json:"issuerRef,omitempty"`

	// RotatedAt asks for another authority in place of one that was made before this time, such as
	// now. A time in the future is waited for. Without it an authority is replaced when two thirds
	// of its life, which is ten years, are over.
	// +optional
	RotatedAt *metav1.Time `json:"rotatedAt,omitempty"`

	// Hold is how long ConfigMap <cluster>-clients-ca has the certificates of both authorities
	// before nodes show what the new one has signed, and again before the old one is dropped.
	// Clients take the ConfigMap over in that time. Default: 168h, which is a week; with
	// clientCertificates: Required the old one is not dropped before it ends, unless hold is given:
	// clients may have certificates that it has signed.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`duration(self) >= duration('0s') && duration(self) <= duration('8760h')`,message=`security.encryption.certificates.clients.hold must be from 0s to 8760h (a year)`
	Hold *metav1.Duration `json:"hold,omitempty"`
}

// CertificateIssuer is one of cert-manager.
type CertificateIssuer struct {
	// Name of it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Kind of it. Default: Issuer.
	// +optional
	// +kubebuilder:validation:Enum=Issuer;ClusterIssuer
	Kind string `json:"kind,omitempty"`

	// Group of that kind, for issuers outside of cert-manager. Default: cert-manager.io.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`
}

// EncryptionStatus says what is encrypted in a ring: what all of its nodes run. While they are
// brought from one mode to another, that is the one which refuses less.
type EncryptionStatus struct {
	// Internode is the traffic between nodes.
	// +optional
	Internode EncryptionMode `json:"internode,omitempty"`

	// Clients are the connections of CQL.
	// +optional
	Clients EncryptionMode `json:"clients,omitempty"`

	// Authorities that nodes and clients trust: one of each use, two while one replaces the other.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Authorities []AuthorityStatus `json:"authorities,omitempty"`

	// NextExpiry is when the first of the certificates ends that the nodes have now, or an
	// authority of theirs.
	// +optional
	NextExpiry *metav1.Time `json:"nextExpiry,omitempty"`

	// EndsWithinDays is 14, 7 or 1 if that is so soon, although it should have been renewed long
	// before.
	// +optional
	// +kubebuilder:validation:Enum=14;7;1
	EndsWithinDays int32 `json:"endsWithinDays,omitempty"`
}

// AuthorityStage is where a certificate authority is on its way.
//
// +kubebuilder:validation:Enum=Introduced;Signing;Retired
type AuthorityStage string

const (
	// AuthorityIntroduced – nodes and clients come to trust it; it signs nothing yet.
	AuthorityIntroduced AuthorityStage = "Introduced"
	// AuthoritySigning – it signs the certificates of the nodes.
	AuthoritySigning AuthorityStage = "Signing"
	// AuthorityRetired – it is trusted, and signs nothing any more.
	AuthorityRetired AuthorityStage = "Retired"
)

// AuthorityStatus is a certificate authority of a ring.
type AuthorityStatus struct {
	// Use of the certificates that it signs.
	// +required
	Use CertificateUse `json:"use"`

	// Fingerprint of its certificate: SHA-256 in hexadecimal digits.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Fingerprint string `json:"fingerprint"`

	// NotAfter is when it ends.
	// +required
	NotAfter metav1.Time `json:"notAfter"`

	// Stage of it: Introduced, Signing, Retired.
	// +required
	Stage AuthorityStage `json:"stage"`
}

// NodeEncryption is how a node encrypts.
type NodeEncryption struct {
	// Internode is the traffic between nodes.
	// +required
	Internode EncryptionMode `json:"internode"`

	// ConnectsPlain says that with Optional the node itself connects to others without encryption:
	// some of them may have Disabled.
	// +optional
	ConnectsPlain bool `json:"connectsPlain,omitempty"`

	// Clients are the connections of CQL.
	// +required
	Clients EncryptionMode `json:"clients"`

	// ClientCertificates that are asked for.
	// +required
	ClientCertificates ClientCertificates `json:"clientCertificates"`
}

// NotEncrypted is a ring that was made without encryption.
func NotEncrypted() NodeEncryption {
	return NodeEncryption{Internode: EncryptionDisabled, Clients: EncryptionDisabled,
		ClientCertificates: ClientCertificatesNone}
}

// OrNotEncrypted is the encryption of a node of a ring that may have been made by an earlier
// release of Helenus.
func (e *NodeEncryption) OrNotEncrypted() NodeEncryption {
	if e == nil {
		return NotEncrypted()
	}
	return *e
}

// Has says that a node has certificates for a use.
func (e *NodeEncryption) Has(use CertificateUse) bool {
	return e != nil && (use == UseInternode && e.Internode.Encrypts() || use == UseClients && e.Clients.Encrypts())
}

// Uses of the certificates that a node has.
func (e *NodeEncryption) Uses() []CertificateUse {
	var out []CertificateUse
	for _, use := range []CertificateUse{UseInternode, UseClients} {
		if e.Has(use) {
			out = append(out, use)
		}
	}
	return out
}

// CertificateStatus is a certificate with which a node's Cassandra proves who it is.
type CertificateStatus struct {
	// Use of it.
	// +required
	Use CertificateUse `json:"use"`

	// SerialNumber of the one that a handshake with Cassandra has shown, in hexadecimal digits;
	// empty before that.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	SerialNumber string `json:"serialNumber,omitempty"`

	// NotAfter is when it ends.
	// +optional
	NotAfter *metav1.Time `json:"notAfter,omitempty"`

	// Authority is the fingerprint of the one that has signed it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Authority string `json:"authority,omitempty"`

	// Trusted are the fingerprints of the authorities that Cassandra trusts since it shows it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=64
	Trusted []string `json:"trusted,omitempty"`

	// Problem says why the one that Secret <node>-<use>-tls holds is not taken; empty if it is.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Problem string `json:"problem,omitempty"`
}

// Encryption that the spec asks for, without defaults.
func (s *CassandraClusterSpec) Encryption() NodeEncryption {
	var out NodeEncryption
	if s.Security == nil || s.Security.Encryption == nil {
		return out
	}
	if i := s.Security.Encryption.Internode; i != nil {
		out.Internode = i.Mode
	}
	if c := s.Security.Encryption.Clients; c != nil {
		out.Clients, out.ClientCertificates = c.Mode, c.ClientCertificates
	}
	return out
}

// RotatedAt is the time before which an authority of a use is replaced; nil for none.
func (s *CassandraClusterSpec) RotatedAt(use CertificateUse) *metav1.Time {
	c := s.certificates()
	switch {
	case use == UseInternode && c.Internode != nil:
		return c.Internode.RotatedAt
	case use == UseClients && c.Clients != nil:
		return c.Clients.RotatedAt
	}
	return nil
}

// HasOwn says that clients know the nodes by an authority of the user: there is none in a Secret of
// Helenus. Of that between nodes the stage is in such a Secret, of Helenus or of an issuer.
func (s *CassandraClusterSpec) HasOwn(use CertificateUse) bool {
	return use == UseClients && (s.ClientsSecret() != "" || s.Issuer(use) != nil)
}

// Issuer is that of cert-manager for a use; nil if there is none.
func (s *CassandraClusterSpec) Issuer(use CertificateUse) *CertificateIssuer {
	c := s.certificates()
	switch {
	case use == UseInternode && c.Internode != nil:
		return c.Internode.IssuerRef
	case use == UseClients && c.Clients != nil:
		return c.Clients.IssuerRef
	}
	return nil
}

// ClientsSecret is the Secret with the user's own certificate for clients; empty if he has none.
func (s *CassandraClusterSpec) ClientsSecret() string {
	if c := s.certificates().Clients; c != nil {
		return c.SecretName
	}
	return ""
}

// ClientsHold is how long clients have for each change of the authority; nil if nobody says so.
func (s *CassandraClusterSpec) ClientsHold() *metav1.Duration {
	if c := s.certificates().Clients; c != nil {
		return c.Hold
	}
	return nil
}

func (s *CassandraClusterSpec) certificates() Certificates {
	if s.Security == nil || s.Security.Encryption == nil || s.Security.Encryption.Certificates == nil {
		return Certificates{}
	}
	return *s.Security.Encryption.Certificates
}

// CertificateLifetime is how long certificates of nodes are to be valid.
func (s *CassandraClusterSpec) CertificateLifetime() time.Duration {
	if of := s.certificates().Lifetime; of != nil {
		return of.Duration
	}
	return DefaultCertificateLifetime
}
