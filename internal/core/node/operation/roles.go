package operation

import "helenus.io/helenus/api/v1alpha1"

var (
	// An import has the files of a table to itself.
	importSuperuser = Kind{
		Type: v1alpha1.OperationImportSuperuser,
		ConflictsWith: append([]v1alpha1.OperationType{
			v1alpha1.OperationImportSuperuser, v1alpha1.OperationSetRoles, v1alpha1.OperationProveLogin,
		}, besideRewrites...),
		Check: func(r Request) *Refusal {
			if r.View.NativeRunning && r.Arguments.WrittenAt == nil {
				return refuse(v1alpha1.BlockedClientTrafficOpen,
					"a superuser is imported before CQL opens for the first time, and it is open")
			}
			return nil
		},
	}
	// Roles are set after the keyspace that holds them was altered, so that it conflicts with what
	// an alteration conflicts with.
	setRoles = Kind{
		Type: v1alpha1.OperationSetRoles,
		ConflictsWith: append([]v1alpha1.OperationType{
			v1alpha1.OperationSetRoles, v1alpha1.OperationProveLogin, v1alpha1.OperationCleanup,
			v1alpha1.OperationDecommission, v1alpha1.OperationRemoveNode,
		}, alterSystemKeyspaces.ConflictsWith...),
		Check: keyspacesAlterable,
	}
	// A password is set although a repair or a cleanup runs for long: a write like that of a
	// client.
	setPassword = Kind{
		Type: v1alpha1.OperationSetPassword,
		ConflictsWith: []v1alpha1.OperationType{
			v1alpha1.OperationImportSuperuser, v1alpha1.OperationSetRoles, v1alpha1.OperationSetPassword,
			v1alpha1.OperationProveLogin,
		},
		Check: openCQL,
	}
	// Roles of applications are kept meanwhile, too.
	keepRoles = Kind{
		Type: v1alpha1.OperationKeepRoles,
		ConflictsWith: []v1alpha1.OperationType{
			v1alpha1.OperationImportSuperuser, v1alpha1.OperationSetRoles, v1alpha1.OperationSetPassword,
			v1alpha1.OperationKeepRoles,
		},
		Check: openCQL,
	}
	proveLogin = Kind{
		Type:          v1alpha1.OperationProveLogin,
		ConflictsWith: []v1alpha1.OperationType{v1alpha1.OperationProveLogin},
		Check:         openCQL,
	}
	checkRows = Kind{Type: v1alpha1.OperationCheckRows, Check: openCQL}
)

// openCQL refuses to log in where nobody can.
func openCQL(r Request) *Refusal {
	if !r.View.NativeRunning {
		return refuse(v1alpha1.BlockedNativeTransportClosed, "it needs CQL, which is closed")
	}
	return nil
}
