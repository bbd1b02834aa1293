package v1alpha1

// ApplicationRole is a role that Helenus keeps: clients log in as it.
type ApplicationRole struct {
	// Name of the role: letters, digits and underscores. Not one of Helenus, nor cassandra.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[A-Za-z][A-Za-z0-9_]*$') && !(self in ['helenus_root', 'helenus_operator', 'cassandra'])`,messageExpression=`'security.authentication.roles: name "' + self + '" must begin with a letter, have letters, digits and underscores, and be another than helenus_root, helenus_operator and cassandra'`
	Name string `json:"name"`

	// SecretName is the Secret of type kubernetes.io/basic-auth with its password, of 1 to 72
	// bytes, and no username or the name of the role. Helenus neither writes nor deletes it. When
	// its password changes, so does that of the role, without a restart.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')`,messageExpression=`'security.authentication.roles: secretName "' + self + '" must be the name of a Secret: lower-case letters, digits, hyphens and dots'`
	SecretName string `json:"secretName"`

	// Grants are what the role may. What is taken out is revoked; what was granted by CQL stays.
	// +optional
	// +listType=map
	// +listMapKey=keyspace
	// +kubebuilder:validation:MaxItems=32
	Grants []RoleGrant `json:"grants,omitempty"`
}

// AllKeyspaces in place of a keyspace are all but those of Cassandra itself.
const AllKeyspaces = "*"

// RoleGrant is what a role may in a keyspace.
type RoleGrant struct {
	// Keyspace by its name in Cassandra; * for all but those of Cassandra itself. One that does not
	// exist is waited for.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:validation:XValidation:rule=`self == '*' || self.matches('^[A-Za-z0-9_]+$') && !self.startsWith('system')`,messageExpression=`'security.authentication.roles: keyspace "' + self + '" must be *, or the name of a keyspace that is not one of Cassandra itself: letters, digits and underscores'`
	Keyspace string `json:"keyspace"`

	// Permissions there.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=6
	Permissions []Permission `json:"permissions"`
}

// Permission is what CQL can grant on a keyspace.
//
// +kubebuilder:validation:Enum=SELECT;MODIFY;CREATE;ALTER;DROP;AUTHORIZE
type Permission string

const (
	// PermissionSelect – reads rows.
	PermissionSelect Permission = "SELECT"
	// PermissionModify – writes and deletes rows, and truncates tables.
	PermissionModify Permission = "MODIFY"
	// PermissionCreate – makes tables; with keyspace *, also keyspaces.
	PermissionCreate Permission = "CREATE"
	// PermissionAlter – alters them.
	PermissionAlter Permission = "ALTER"
	// PermissionDrop – drops them.
	PermissionDrop Permission = "DROP"
	// PermissionAuthorize – grants to others what it may itself.
	PermissionAuthorize Permission = "AUTHORIZE"
)

// RoleIntent is a role that KeepRoles makes, or makes so.
type RoleIntent struct {
	ApplicationRole `json:",inline"`

	// SecretVersion is the resourceVersion that its Secret had when this was asked for.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	SecretVersion string `json:"secretVersion,omitempty"`

	// Revokes are what the role may no longer.
	// +optional
	// +listType=map
	// +listMapKey=keyspace
	// +kubebuilder:validation:MaxItems=32
	Revokes []RoleGrant `json:"revokes,omitempty"`
}

// RoleStatus is a role that Helenus keeps.
type RoleStatus struct {
	// Name of the role.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=48
	Name string `json:"name"`

	// SecretVersion is the resourceVersion of its Secret whose password the role has.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	SecretVersion string `json:"secretVersion,omitempty"`
}

// ApplicationRoles are those that the spec asks for.
func (s *CassandraClusterSpec) ApplicationRoles() []ApplicationRole {
	if s.Security == nil || s.Security.Authentication == nil {
		return nil
	}
	return s.Security.Authentication.Roles
}
