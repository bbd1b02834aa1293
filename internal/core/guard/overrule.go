package guard

import (
	"slices"

	"helenus.io/helenus/api/v1alpha1"
)

// Overruled are the rules in which some guards find nothing. What they would have found is told.
func (r Rules) Overruled(these []v1alpha1.Reason, told func(v1alpha1.Reason, Finding)) Rules {
	if len(these) == 0 {
		return r
	}
	r.BeforeJoin, r.RollOut = overruled(r.BeforeJoin, these, told), overruled(r.RollOut, these, told)
	r.Leaving, r.Replace = overruled(r.Leaving, these, told), overruled(r.Replace, these, told)
	r.Room, r.Encryption = overruled(r.Room, these, told), overruled(r.Encryption, these, told)
	return r
}

func overruled[T any](guards []Guard[T], these []v1alpha1.Reason, told func(v1alpha1.Reason, Finding)) []Guard[T] {
	out := slices.Clone(guards)
	for i, g := range guards {
		if !slices.Contains(these, g.Reason) {
			continue
		}
		out[i].Check = func(about T) []Finding {
			for _, f := range g.Check(about) {
				told(g.Reason, f)
			}
			return nil
		}
	}
	return out
}
