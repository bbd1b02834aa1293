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
	// Lifetime of a certificate, which is replaced when two thirds of it are over. Default: 2160h,
	// which is 90 days. The next certificate of each node has it.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`duration(self) >= duration('10m') && duration(self) <= duration('87600h')`,message=`security.encryption.certificates.lifetime must be from 10m to 87600h (ten years)`
	Lifetime *metav1.Duration `json:"lifetime,omitempty"`
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

	// NextExpiry is when the first of the certificates ends that the nodes have now.
	// +optional
	NextExpiry *metav1.Time `json:"nextExpiry,omitempty"`
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

// CertificateLifetime is how long certificates of nodes are to be valid.
func (s *CassandraClusterSpec) CertificateLifetime() time.Duration {
	if s.Security == nil || s.Security.Encryption == nil || s.Security.Encryption.Certificates == nil ||
		s.Security.Encryption.Certificates.Lifetime == nil {
		return DefaultCertificateLifetime
	}
	return s.Security.Encryption.Certificates.Lifetime.Duration
}
