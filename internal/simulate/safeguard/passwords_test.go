package safeguard

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/execute"
	"helenus.io/helenus/internal/agent/superuser"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/initapi"
	"helenus.io/helenus/internal/initclient"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// fullAtFirst is a disk that has no room for the SSTable of the superuser the first times.
type fullAtFirst struct {
	execute.Disk
	left *int
}

func (d fullAtFirst) PlaceSSTable(keyspace, table, name string, files map[string][]byte) error {
	if *d.left > 0 {
		*d.left--
		return errors.New("no space left on device")
	}
	return d.Disk.PlaceSSTable(keyspace, table, name, files)
}

// delayed starts JVMs that look after Cassandra's own delay whether there is a superuser.
type delayed struct{ execute.Init }

func (d delayed) Start(ctx context.Context, seen initapi.State, id uint64, c initclient.Command) (initapi.State, error) {
	name, _, _ := strings.Cut(config.NoDefaultSuperuser, "=")
	c.Argv = slices.DeleteFunc(slices.Clone(c.Argv), func(a string) bool { return strings.HasPrefix(a, name+"=") })
	for i := len(c.Argv) - 1; i >= 0; i-- {
		if c.Argv[i] == "-D" && (i == len(c.Argv)-1 || c.Argv[i+1] == "-D") {
			c.Argv = slices.Delete(c.Argv, i, i+1)
		}
	}
	return d.Init.Start(ctx, seen, id, c)
}

// However long the superuser takes to be imported, Cassandra makes none of its own meanwhile. With
// the delay that Cassandra has it would.
func TestThereIsNoDefaultSuperuser(t *testing.T) {
	s := found(t, "form-password")
	late := func(change func(*execute.Host)) world.Wrap {
		left := 9 // of three nodes
		return host(func(_ *pod.Sandbox, h *execute.Host) {
			h.Disk = fullAtFirst{h.Disk, &left}
			change(h)
		})
	}
	holds(t, trial.Trial{Scenario: s, Seed: 1, Wrap: late(func(*execute.Host) {})})
	caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: late(func(h *execute.Host) { h.Init = delayed{h.Init} })},
		"makes the superuser cassandra")
}

// opensEarly lets clients in together with the import of the superuser.
type opensEarly struct{ client.Client }

func (c opensEarly) Patch(ctx context.Context, o client.Object, patch client.Patch, how ...client.PatchOption) error {
	if n, is := o.(*v1alpha1.CassandraNode); is && slices.ContainsFunc(n.Spec.Operations,
		func(o v1alpha1.OperationIntent) bool { return o.Type == v1alpha1.OperationImportSuperuser }) {
		n.Spec.ClientTraffic = v1alpha1.TrafficOpen
	}
	return c.Client.Patch(ctx, o, patch, how...)
}

// Clients are let in when the roles are set.
func TestRolesAreSetBeforeClientsCome(t *testing.T) {
	early := world.Wrap{Client: func(_ *world.Operator, c client.Client) client.Client { return opensEarly{c} }}
	caught(t, trial.Trial{Scenario: found(t, "form-password"), Seed: 1, Wrap: early},
		"is opened to clients before the roles are set")
}

// forgetsOld keeps no password before.
type forgetsOld struct{ client.Client }

func (c forgetsOld) Update(ctx context.Context, o client.Object, how ...client.UpdateOption) error {
	if s, is := o.(*corev1.Secret); is {
		delete(s.Data, v1alpha1.KeyOldPassword)
	}
	return c.Client.Update(ctx, o, how...)
}

// The password before is kept until the new one is proven.
func TestTheOldPasswordIsKept(t *testing.T) {
	s := found(t, "rotate-password")
	holds(t, trial.Trial{Scenario: s, Seed: 1})
	forgets := world.Wrap{Client: func(_ *world.Operator, c client.Client) client.Client { return forgetsOld{c} }}
	caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: forgets}, "no password that is kept lets the superuser in")
}

// writesOldest places the role helenus_root as it is written when a ring forms, whenever that is.
type writesOldest struct{ execute.Disk }

func (d writesOldest) PlaceSSTable(keyspace, table, name string, files map[string][]byte) error {
	oldest, err := superuser.SSTable(string(hashInData.Find(files["Data.db"])), superuser.Oldest)
	return errors.Join(err, d.Disk.PlaceSSTable(keyspace, table, name, oldest))
}

var hashInData = regexp.MustCompile(`\$2a\$\d\d\$[./A-Za-z0-9]{53}`)

// What resets a superuser is written now: any other loses against the role that is locked.
func TestAResetIsWrittenNow(t *testing.T) {
	s := found(t, "reset-superuser")
	holds(t, trial.Trial{Scenario: s, Seed: 1})
	caught(t, trial.Trial{Scenario: s, Seed: 1,
		Wrap: host(func(_ *pod.Sandbox, h *execute.Host) { h.Disk = writesOldest{h.Disk} })}, "act reset it is not over")
}

// asksAtOnce has every node ask for passwords as soon as the spec does: without the roles.
type asksAtOnce struct{ client.Client }

func (c asksAtOnce) Update(ctx context.Context, o client.Object, how ...client.UpdateOption) error {
	if m, is := o.(*corev1.ConfigMap); is {
		m.Data[ledger.Key] = strings.ReplaceAll(m.Data[ledger.Key], `"authentication":{"mode":"None","superuserSecret"`,
			`"authentication":{"mode":"None","towards":"Password","superuserSecret"`)
	}
	return c.Client.Update(ctx, o, how...)
}

// Patch asks no node to make the roles.
func (c asksAtOnce) Patch(ctx context.Context, o client.Object, p client.Patch, how ...client.PatchOption) error {
	if n, is := o.(*v1alpha1.CassandraNode); is {
		n.Spec.Operations = slices.DeleteFunc(n.Spec.Operations,
			func(i v1alpha1.OperationIntent) bool { return i.Type == v1alpha1.OperationSetRoles })
	}
	return c.Client.Patch(ctx, o, p, how...)
}

// neverWaits takes the roles of the applications for ready when ours are.
type neverWaits struct{ client.Client }

func (c neverWaits) Update(ctx context.Context, o client.Object, how ...client.UpdateOption) error {
	if m, is := o.(*corev1.ConfigMap); is {
		m.Data[ledger.Key] = strings.ReplaceAll(m.Data[ledger.Key], `"towards":"Password",`,
			`"towards":"Password","ready":true,`)
	}
	return c.Client.Update(ctx, o, how...)
}

// A ring that serves has its roles before the first node asks for them, and those of its clients
// before others do.
func TestPasswordsAreAskedInTurn(t *testing.T) {
	s := found(t, "passwords-living-ring")
	holds(t, trial.Trial{Scenario: s, Seed: 1})
	holds(t, trial.Trial{Scenario: found(t, "passwords-off"), Seed: 1})
	broken := func(by func(client.Client) client.Client) trial.Trial {
		return trial.Trial{Scenario: s, Seed: 1,
			Wrap: world.Wrap{Client: func(_ *world.Operator, c client.Client) client.Client { return by(c) }}}
	}
	caught(t, broken(func(c client.Client) client.Client { return asksAtOnce{c} }),
		"is to ask for passwords before the roles are made")
	caught(t, broken(func(c client.Client) client.Client { return neverWaits{c} }),
		"is to ask for passwords before its clients have roles")
}
