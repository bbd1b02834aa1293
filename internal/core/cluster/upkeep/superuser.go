package upkeep

import (
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/ledger"
)

// superuserAgain is when the Secret of the superuser is looked at again: it sends no event.
const superuserAgain = time.Minute

// appliedSuperuser copies the login of the superuser before the role is made, so that the ring is
// made with what is known whatever becomes of its Secret, and notes that it has been proven before
// the ring opens. A copy that is lost is made again, and is not proven then. Other passwords are
// copied by the step that applies them.
func (k *Keeper) appliedSuperuser() {
	if !k.Begun() {
		return
	}
	k.draft.WakeIn(superuserAgain)
	applied, stage := k.Passwords.Applied, ledger.Stage("")
	if s := k.Ledger.Step; s != nil && s.Kind == ledger.FormRing {
		stage = s.Stage
	}
	unmade := k.asksNobody() ||
		slices.Contains([]ledger.Stage{ledger.StageTickets, ledger.StageFormed, ledger.StageSuperuser}, stage)
	switch {
	case applied == nil && k.Passwords.Superuser != nil && k.Passwords.Problem == "":
		k.draft.Write(procedure.CopyPassword(k.View, false, "it is what agents read"))
	case unmade && applied != nil && k.Passwords.Changed:
		k.deleteSecret(applied, "no superuser is made yet, and it is to be another one")
	case stage == ledger.StageOpen && applied != nil && applied.Annotations[v1alpha1.AnnotationAppliedAt] == "":
		k.draft.Write(procedure.DropOldPassword(k.View, "the superuser is made with it"))
	}
}
