package upkeep

import (
	"fmt"
	"slices"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/ledger"
)

// judgeReplace says what becomes of an exception that has a node replaced, or accepts what is lost
// with it.
func (k *Keeper) judgeReplace(e *v1alpha1.Exception) (v1alpha1.ExceptionState, string) {
	switch s := k.Ledger.Step; {
	case s != nil && s.Kind == ledger.ReplaceNode && s.Has(e.Node):
		return v1alpha1.ExceptionActive, fmt.Sprintf("node %s is being replaced", e.Node)
	case slices.ContainsFunc(k.Ledger.Lost, func(l ledger.Lost) bool { return l.Node == e.Node }):
		return v1alpha1.ExceptionActive, fmt.Sprintf("node %s is to be replaced", e.Node)
	default:
		return v1alpha1.ExceptionWaiting,
			fmt.Sprintf("node %s is not lost: this counts once its disk or host is", e.Node)
	}
}
