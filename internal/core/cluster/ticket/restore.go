package ticket

import (
	"cmp"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/restore"
)

// Add takes the ticket of a node into the state, which is rebuilt from tickets.
func (s *State) Add(node string, t *v1alpha1.JoinTicket) {
	s.Tokens[node] = t.Tokens
	if t.Restore == nil {
		return
	}
	if s.Restore == nil {
		s.Restore, s.Sources = t.Restore.DeepCopy(), map[string]string{}
		s.Restore.HostID = ""
	}
	s.Sources[node] = t.Restore.HostID
}

// Restored is the state of a step that makes a ring from the backup of the view, whose description
// is known and fits: each node takes the tokens of the one whose data it gets. It is the same
// whenever it is asked for.
func Restored(v *assess.View) State {
	r, b := v.Cluster.Spec.Restore(), v.Backup
	out := State{
		Restore: &v1alpha1.DiskRestore{Store: b.Store, Cluster: r.Source.UID, Backup: b.Description.ID,
			Roles: cmp.Or(r.Roles, v1alpha1.RolesFresh), PointInTime: r.PointInTime.DeepCopy()},
		Tokens: map[string][]string{}, Sources: map[string]string{},
	}
	for name, source := range restore.Sources(v.Wanted, b.Description) {
		out.Tokens[name], out.Sources[name] = source.Tokens, source.HostID
	}
	return out
}
