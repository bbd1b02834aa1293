package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AuthenticationMode is who may log in to a ring.
//
// +kubebuilder:validation:Enum=Password;None
type AuthenticationMode string

const (
	// AuthenticationPassword – clients log in as a role with its password.
	AuthenticationPassword AuthenticationMode = "Password"
	// AuthenticationNone – clients need no login, and have all permissions.
	AuthenticationNone AuthenticationMode = "None"
)

// Names of the roles that Helenus makes in a ring that asks for passwords. No other role may have
// one of them.
const (
	// RoleRoot is the superuser by which the others are made. It is locked before clients come.
	RoleRoot = "helenus_root"
	// RoleOperator is what Helenus logs in as.
	RoleOperator = "helenus_operator"
	// RoleSuperuser is the superuser of the user, unless a Secret of his names another.
	RoleSuperuser = "superuser"
	// RoleDefault is the superuser that Cassandra makes by itself, with its name as password.
	RoleDefault = "cassandra"
)

// RootToken is the token of RoleRoot by Cassandra's Murmur3Partitioner.
const RootToken = 3657325495109191048

// KeyRootHash of the Secret of roles is the bcrypt hash of the password of RoleRoot. The passwords
// themselves are there by the names of their roles.
const KeyRootHash = RoleRoot + ".hash"

// KeyOldPassword of the Secret of the applied superuser is the password before, until the one that
// is to replace it is proven on every node.
const KeyOldPassword = "password.old"

// PasswordUnknown is what SetPassword says if it cannot log in as the superuser.
const PasswordUnknown = "neither the password of the Secret nor the one that Helenus applied last is the superuser's"

// MaxPasswordBytes is how long a password may be: bcrypt cuts off what is beyond.
const MaxPasswordBytes = 72

// Security says who may do what with a ring. How a ring was made is kept: one that was made by an
// earlier release of Helenus stays as it is.
type Security struct {
	// Authentication says who may log in.
	// +optional
	Authentication *Authentication `json:"authentication,omitempty"`

	// Encryption says what is encrypted.
	// +optional
	Encryption *Encryption `json:"encryption,omitempty"`

	// NetworkPolicy says who may reach the ring.
	// +optional
	NetworkPolicy *NetworkPolicy `json:"networkPolicy,omitempty"`
}

// Authentication says who may log in.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.mode) || self.mode == 'Password' || !has(self.superuser)`,message=`security.authentication.superuser needs mode: Password`
// +kubebuilder:validation:XValidation:rule=`!has(self.mode) || self.mode == 'Password' || !has(self.roles)`,message=`security.authentication.roles needs mode: Password`
type Authentication struct {
	// Mode: Password asks everybody for the name and the password of a role; None lets everybody
	// in. Default: Password for a new ring; one that exists keeps what it was made with, and a ring
	// that was made by an earlier release has None. A ring that exists is changed node by node:
	// to Password once an exception RolesReady says that the applications have roles, and to None
	// with an exception TurnOffPassword.
	// +optional
	Mode AuthenticationMode `json:"mode,omitempty"`

	// Superuser is the role with all rights that the ring is made with.
	// +optional
	Superuser *Superuser `json:"superuser,omitempty"`

	// Roles are those of applications that Helenus keeps: each has the password of its Secret and
	// the permissions that are listed. One that is taken out stays in the ring, and is recommended
	// for dropping.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Roles []ApplicationRole `json:"roles,omitempty"`
}

// Superuser is the role with all rights that a ring is made with.
type Superuser struct {
	// SecretName is the Secret of type kubernetes.io/basic-auth with its username and password,
	// which Helenus neither writes nor deletes. Default: <cluster>-superuser, which is made once.
	// It cannot be changed once the ring forms.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self == "" || self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')`,messageExpression=`'security.authentication.superuser.secretName "' + self + '" must be the name of a Secret: lower-case letters, digits, hyphens and dots'`
	SecretName string `json:"secretName,omitempty"`
}

// SecurityStatus is how a ring is protected.
type SecurityStatus struct {
	// Authentication says who may log in.
	// +optional
	Authentication *AuthenticationStatus `json:"authentication,omitempty"`

	// Encryption says what is encrypted.
	// +optional
	Encryption *EncryptionStatus `json:"encryption,omitempty"`
}

// AuthenticationStatus says who may log in to a ring.
type AuthenticationStatus struct {
	// Mode that all nodes have, or will be made with.
	// +optional
	Mode AuthenticationMode `json:"mode,omitempty"`

	// Next is the mode that the nodes get, one after the other; empty if all have theirs.
	// +optional
	Next AuthenticationMode `json:"next,omitempty"`

	// Superuser is the role with all rights; none with mode None.
	// +optional
	Superuser *SuperuserStatus `json:"superuser,omitempty"`

	// Roles are those of applications that have what the spec says.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Roles []RoleStatus `json:"roles,omitempty"`
}

// SuperuserStatus is the role with all rights that a ring was made with.
type SuperuserStatus struct {
	// SecretName is the Secret with its username and password.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`

	// SecretVersion is the resourceVersion of that Secret whose content the ring has; empty while
	// another password is being applied.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	SecretVersion string `json:"secretVersion,omitempty"`

	// AppliedAt is when it was proven on every node; empty while another password is being applied.
	// +optional
	AppliedAt *metav1.Time `json:"appliedAt,omitempty"`
}

// AuthenticationMode that the spec asks for; empty if it says nothing.
func (s *CassandraClusterSpec) AuthenticationMode() AuthenticationMode {
	if s.Security == nil || s.Security.Authentication == nil {
		return ""
	}
	return s.Security.Authentication.Mode
}

// NamedSuperuser is the Secret that the spec names for the superuser; empty if it names none.
func (s *CassandraClusterSpec) NamedSuperuser() string {
	if s.Security == nil || s.Security.Authentication == nil || s.Security.Authentication.Superuser == nil {
		return ""
	}
	return s.Security.Authentication.Superuser.SecretName
}
