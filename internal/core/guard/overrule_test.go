package guard

import (
	"reflect"
	"slices"
	"testing"

	"helenus.io/helenus/api/v1alpha1"
)

// Each guard that can be overruled is overruled wherever it is asked, and no other.
func TestEveryGuardThatCanBeOverruledIs(t *testing.T) {
	these := []v1alpha1.Reason{}
	for _, g := range []v1alpha1.OverridableGuard{v1alpha1.OverrideHostCordoned, v1alpha1.OverrideStreamInProgress,
		v1alpha1.OverrideTooLittleDisk, v1alpha1.OverrideCleanupDue, v1alpha1.OverrideNoHostHasRoom,
		v1alpha1.OverridePlainClients} {
		these = append(these, v1alpha1.Reason(g))
	}
	before, after := reflect.ValueOf(All()), reflect.ValueOf(All().Overruled(these, nil))
	found := map[v1alpha1.Reason]bool{}
	for i := range before.NumField() {
		for j := range before.Field(i).Len() {
			was, is := before.Field(i).Index(j), after.Field(i).Index(j)
			reason := v1alpha1.Reason(was.FieldByName("Reason").String())
			same := was.FieldByName("Check").Pointer() == is.FieldByName("Check").Pointer()
			if slices.Contains(these, reason) == same {
				t.Errorf("%s of %s: overruled %v", reason, before.Type().Field(i).Name, !same)
			}
			found[reason] = true
		}
	}
	for _, reason := range these {
		if !found[reason] {
			t.Errorf("there is no guard %s", reason)
		}
	}
}
