package upkeep

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/cluster/ticket"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/words"
)

// passwords sees to it that a ring that is to ask for passwords has the Secrets of its roles. They
// are made before the roles are. One that is lost afterwards is not made again: what is on the
// disks would not be what is in it.
func (k *Keeper) passwords() {
	if k.NextAuthentication() == v1alpha1.AuthenticationNone && k.AnyAsks() {
		k.draft.Notice(v1alpha1.NoticePasswordsTurnedOff, nil, "security.authentication.mode is None: node after node "+
			"lets everybody in who reaches it, with all permissions. To keep the passwords, set it to Password")
	}
	if k.HasRing() && !k.LedgerLost && k.Authentication() == "" && k.Cluster.Spec.AuthenticationMode() == "" {
		k.draft.Recommend("EnableAuthentication", nil, "everybody who reaches the ring can do everything: set "+
			"security.authentication.mode to Password, which the guide of security explains; or to None, to have it so")
	}
	if !k.HasRoles() || k.LedgerLost || k.SpecRejected && !k.AsksForPassword() {
		return
	}
	var wanted []*corev1.Secret
	if k.Passwords.Roles == nil {
		wanted = append(wanted, render.RolesSecret(k.Owner()))
	}
	ours := render.SuperuserSecret(k.Owner())
	if k.Passwords.Superuser == nil && k.Cluster.Spec.NamedSuperuser() == "" && k.SuperuserSecret() == ours.Name {
		wanted = append(wanted, ours)
	}
	k.appliedSuperuser()
	k.applicationRoles()
	var missing []string
	for _, secret := range wanted {
		if k.rolesUnmade() {
			k.draft.Write(plan.Write{Verb: plan.MakePasswords, Object: secret})
			continue
		}
		missing = append(missing, secret.Name)
	}
	if len(missing) == 0 {
		return
	}
	k.draft.WakeIn(secretsAgain)
	k.draft.Block("SharedObjects", v1alpha1.BlockedPasswordsMissing, nil,
		"Secret %s, with passwords of the roles of this ring, is gone, and new ones would not be those on the disks: "+
			"Helenus cannot log in to alter keyspaces, and nobody finds the superuser's password there. Waits until "+
			"it is restored from a backup. Cassandra keeps running meanwhile", words.List(missing, 2))
}

// applicationRoles says what of the roles of applications a person has to do.
func (k *Keeper) applicationRoles() {
	for _, r := range k.Ledger.Roles {
		if !r.RemovedAt.IsZero() {
			k.draft.Recommend("DropRole", nil, fmt.Sprintf("role %s is no longer in security.authentication.roles, "+
				"and can log in as before. Drop it by CQL if nothing needs it: DROP ROLE %s", r.Name, r.Name))
		}
	}
	if missing := procedure.MissingKeyspaces(k.View); k.HasRing() && len(missing) > 0 {
		k.draft.Notice(v1alpha1.NoticeKeyspaceMissing, nil, "security.authentication.roles grants permissions in %s, "+
			"which the ring does not have: they are granted once it has", words.List(missing, 3))
	}
}

// rolesUnmade says that no node can have a role of ours yet.
func (k *Keeper) rolesUnmade() bool {
	if k.Adopts() != "" {
		return false
	}
	s := k.Ledger.Step
	return !k.Begun() || k.asksNobody() || s != nil && s.Kind == ledger.FormRing &&
		slices.Contains([]ledger.Stage{ledger.StageTickets, ledger.StageFormed}, s.Stage)
}

// asksNobody says that a ring serves without passwords, and that what roles it may have are to be
// written anew before any node asks.
func (k *Keeper) asksNobody() bool {
	a, open := k.Ledger.Authentication, slices.Concat(k.Ledger.Open(), k.Ledger.Suspended)
	return k.HasRing() && !k.AsksForPassword() && !k.AnyAsks() && (a == nil || a.Towards == "") &&
		!slices.ContainsFunc(open, func(s *ledger.Step) bool { return s.Kind == ledger.MakeRoles })
}

// secretsOfAgents are those that agents may read: of roles, and of the stores of commit logs, and
// of backups and restores that have not finished.
func (k *Keeper) secretsOfAgents() []string {
	var out []string
	if k.HasRoles() {
		out = append(out, v1alpha1.RolesName(k.Cluster.Name), v1alpha1.AppliedSuperuserName(k.Cluster.Name))
		for _, r := range k.Cluster.Spec.ApplicationRoles() {
			if !slices.Contains(out, r.SecretName) {
				out = append(out, r.SecretName)
			}
		}
	}
	read := func(store *v1alpha1.BackupStoreSpec) {
		for _, name := range store.SecretNames() {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	if k.Ledger != nil && k.Ledger.Step != nil {
		if from := ticket.Of(k.Ledger.Step).Restore; from != nil {
			read(&from.Store)
		}
	}
	if k.CommitLog != nil {
		read(&k.CommitLog.Store)
	}
	for _, b := range k.Backups {
		if to := k.Stores[b.Spec.Store.Name]; to != nil && !b.Status.Phase.Final() {
			read(to)
		}
	}
	for _, r := range k.Restores {
		if from := k.Stores[r.Spec.Store.Name]; from != nil && !r.Status.Finished() {
			read(from)
		}
	}
	return out
}

// deletePasswords deletes those Secrets of passwords that are ours, as the claims are. Those that
// an earlier cluster has left are its disks', unless the ring was made with them.
func (k *Keeper) deletePasswords() {
	for _, secret := range []*corev1.Secret{k.Passwords.Roles, k.Passwords.Superuser, k.Passwords.Applied} {
		if secret != nil && render.MadeFor(k.Owner(), secret) &&
			(k.Begun() || secret.Labels[v1alpha1.LabelClusterUID] == string(k.Cluster.UID)) {
			k.deleteSecret(secret, "volumes.onClusterDeletion is Delete")
		}
	}
}

// checkPasswords refuses, before a ring is made, what it cannot be made with.
func (k *Keeper) checkPasswords() error {
	if k.Begun() || k.LedgerLost {
		return nil
	}
	asked := k.Cluster.Spec.AuthenticationMode()
	if adopt := k.Adopts(); adopt != "" && asked != "" && asked != k.Authentication() {
		k.draft.WakeIn(secretsAgain)
		return fmt.Errorf("security.authentication.mode is %s, and the disks of the cluster with uid %s were made "+
			"with %s, since Secret %s is%s there: take it out, or restore the Secret", asked, adopt, k.Authentication(),
			v1alpha1.RolesName(k.Cluster.Name), map[bool]string{false: " not"}[k.AsksForPassword()])
	}
	if !k.AsksForPassword() {
		return k.noSuperuser()
	}
	return k.checkSuperuser()
}

// checkSuperuser refuses what no superuser can be made of.
func (k *Keeper) checkSuperuser() error {
	const field = "spec.security.authentication.superuser.secretName"
	named := k.Cluster.Spec.NamedSuperuser()
	switch {
	case k.Passwords.Superuser == nil && named != "":
		k.draft.WakeIn(secretsAgain)
		return fmt.Errorf("%s is %s, and there is no such Secret: create one of type %s with username and password, "+
			"or take the field out and Helenus makes one", field, named, corev1.SecretTypeBasicAuth)
	case k.Passwords.Problem != "":
		k.draft.WakeIn(secretsAgain)
		return fmt.Errorf("%s: Secret %s %s", field, k.SuperuserSecret(), k.Passwords.Problem)
	}
	return nil
}

// checkMadeWith refuses what would have a ring that exists be another than it was made.
func (k *Keeper) checkMadeWith() error {
	made := k.Authentication()
	if made == "" {
		made = v1alpha1.AuthenticationNone
	}
	switch mode := k.Cluster.Spec.AuthenticationMode(); {
	case mode == v1alpha1.AuthenticationNone && made != mode && k.NextAuthentication() != mode && !k.MayTurnOff():
		return fmt.Errorf("security.authentication.mode: %s → %s: all who reach the ring would be accepted, "+
			"with all permissions. Take the change back; or say so by an exception of type %s in spec.exceptions", made,
			mode, v1alpha1.ExceptionTurnOffPassword)
	case mode == v1alpha1.AuthenticationPassword && k.asksNobody():
		if err := k.checkSuperuser(); err != nil {
			return err
		}
	}
	if !k.HasRoles() {
		return k.noSuperuser()
	}
	asked := k.Cluster.Spec.NamedSuperuser()
	if asked == "" {
		asked = v1alpha1.SuperuserName(k.Cluster.Name)
	}
	if asked != k.SuperuserSecret() {
		return fmt.Errorf("security.authentication.superuser.secretName: %s → %s: the superuser of a ring that exists "+
			"cannot be changed here yet; take the change back, and change roles by CQL", k.SuperuserSecret(), asked)
	}
	return nil
}

func (k *Keeper) noSuperuser() error {
	if k.Cluster.Spec.NamedSuperuser() == "" {
		return nil
	}
	return errors.New("security.authentication.superuser.secretName is set, and the ring is made without passwords: " +
		"take it out")
}

// judgeTurnOff says what becomes of an exception that lets a ring stop asking for passwords.
func (k *Keeper) judgeTurnOff() (v1alpha1.ExceptionState, string) {
	switch asked := k.Cluster.Spec.AuthenticationMode(); {
	case !k.HasRoles():
		return v1alpha1.ExceptionOver, "the ring asks nobody for a password: take it out of spec.exceptions"
	case asked != v1alpha1.AuthenticationNone:
		return v1alpha1.ExceptionWaiting, "waits until security.authentication.mode is None"
	}
	return v1alpha1.ExceptionActive, "the ring stops asking for passwords, node by node"
}

// judgeRolesReady says what becomes of an exception by which a node that asks for passwords opens.
func (k *Keeper) judgeRolesReady(n *facts.Node) (v1alpha1.ExceptionState, string) {
	switch {
	case k.RolesReady():
		return v1alpha1.ExceptionOver, "the roles are known to be ready: take it out of spec.exceptions"
	case n.Record.Spec.Configuration.Authentication != v1alpha1.AuthenticationPassword:
		return v1alpha1.ExceptionWaiting, fmt.Sprintf("waits until node %s asks for passwords", n.Name)
	}
	return v1alpha1.ExceptionActive, fmt.Sprintf("node %s opens to clients when logins are proven", n.Name)
}

// asksFirst says that a node is closed to clients since it is the first to ask for passwords.
func (k *Keeper) asksFirst(n *facts.Node) bool {
	return n.Record.Spec.ClientTraffic == v1alpha1.TrafficAdministrative && k.AnyAsks() && !k.AsksForPassword()
}

// rebuildAuthentication of a ring that goes towards passwords: nodes ask for some, so that there
// are roles, and if such a node is open to clients, they have theirs.
func (k *Keeper) rebuildAuthentication(l *ledger.Ledger) {
	if !k.AnyAsks() || k.AsksForPassword() {
		return
	}
	l.Authentication = &ledger.Authentication{Mode: k.Authentication(), Towards: v1alpha1.AuthenticationPassword,
		SuperuserSecret: k.SuperuserSecret(),
		Ready: slices.ContainsFunc(k.Records(), func(n *facts.Node) bool {
			return n.Record.Spec.Configuration.Authentication == v1alpha1.AuthenticationPassword &&
				n.Record.Spec.ClientTraffic == v1alpha1.TrafficOpen
		})}
}
