package operator

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"helenus.io/helenus/internal/observe"
)

func TestLostRace(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	invalid := func(path *field.Path) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "orders-agent-ca",
			field.ErrorList{field.Invalid(path, "x", "field is immutable")})
	}
	for name, c := range map[string]struct {
		err  error
		lost bool
	}{
		"the object was changed": {apierrors.NewConflict(secrets, "orders-agent-ca", errors.New("changed")),
			true},
		"it is there already":               {apierrors.NewAlreadyExists(secrets, "orders-agent-ca"), true},
		"it is another of the name":         {invalid(field.NewPath("metadata", "uid")), true},
		"the cluster changed on the way":    {fmt.Errorf("confirm: %w", observe.ErrChanged), true},
		"a field of it may not be changed":  {invalid(field.NewPath("type")), false},
		"the API server has an ill moment":  {apierrors.NewInternalError(errors.New("etcd")), false},
		"something that no server answered": {errors.New("connection refused"), false},
	} {
		if got := lostRace(fmt.Errorf("apply Secret/orders-agent-ca: %w", c.err)); got != c.lost {
			t.Errorf("%s: lost %v, want %v", name, got, c.lost)
		}
	}
}
