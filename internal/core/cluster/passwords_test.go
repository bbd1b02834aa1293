package cluster

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// withPasswords is a world whose spec says nothing of security: it is to ask for passwords.
func withPasswords(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	w.snapshot.Cluster.Spec.Security = nil
	return w
}

// The node that sets the roles is found by the name that Cassandra has for its datacenter.
func TestPasswordsInADatacenterOfAnotherName(t *testing.T) {
	w := withPasswords(t)
	w.snapshot.Cluster.Spec.Datacenters[0].DatacenterName = "east"
	w.settle()
	w.wantOpen()
}

// No node is open to anybody before each has the superuser, and none to clients before each has
// proven the login.
func TestARingWithPasswordsOpensLast(t *testing.T) {
	w := withPasswords(t)
	done := map[v1alpha1.OperationType]map[string]bool{}
	for range 200 {
		made := w.pass()
		for _, n := range w.snapshot.Records() {
			for _, o := range n.Record.Status.Operations {
				if asked := n.Record.Spec.Operation(o.ID); asked != nil && o.Phase == v1alpha1.OperationSucceeded {
					kind := asked.Type
					if done[kind] == nil {
						done[kind] = map[string]bool{}
					}
					done[kind][n.Name] = true
				}
			}
			traffic := n.Record.Spec.ClientTraffic
			if traffic != v1alpha1.TrafficClosed && len(done[v1alpha1.OperationImportSuperuser]) < 3 {
				t.Fatalf("node %s is %s before every node has the superuser", n.Name, traffic)
			}
			if traffic == v1alpha1.TrafficOpen && len(done[v1alpha1.OperationProveLogin]) < 3 {
				t.Fatalf("node %s opens before every node has proven the login", n.Name)
			}
		}
		if len(made.Writes) == 0 {
			break
		}
	}
	w.wantOpen()
	if got := len(done[v1alpha1.OperationSetRoles]); got != 1 {
		t.Errorf("%d nodes set the roles, want 1", got)
	}
	if made := w.snapshot.Ledger.MadeWith; made == nil || made.Authentication != v1alpha1.AuthenticationPassword ||
		made.SuperuserSecret != "orders-superuser" {
		t.Errorf("the ledger says that the ring was made with %+v", made)
	}
	role := w.snapshot.Shared.Roles["orders-helenus-agent"]
	if last := role.Rules[len(role.Rules)-1]; !slices.Equal(last.ResourceNames, []string{"orders-roles",
		"orders-superuser-applied"}) || !slices.Equal(last.Verbs, []string{"get"}) {
		t.Errorf("agents may %+v", last)
	}
}

// A datacenter that is added has what it is to hold, and each of its nodes has proven that the
// roles can log in, before it opens to clients.
func TestAnAddedDatacenterProvesItsLogins(t *testing.T) {
	w := withPasswords(t)
	w.settle()
	w.change(w.withShop(added("dc2", 2, 2, 1)))
	var did []v1alpha1.OperationType
	proven := map[string]bool{}
	for range 100 {
		made := w.pass()
		for _, n := range w.snapshot.Records() {
			inside := n.Record.Spec.Datacenter == "dc2"
			for _, o := range n.Record.Spec.Operations {
				if inside && !slices.Contains(did, o.Type) {
					did = append(did, o.Type)
				}
				status := n.Record.Status.Operation(o.ID)
				if o.Type == v1alpha1.OperationProveLogin && status != nil &&
					status.Phase == v1alpha1.OperationSucceeded {
					proven[n.Name] = true
				}
			}
			if inside && n.Record.Spec.ClientTraffic == v1alpha1.TrafficOpen && len(proven) < 3 {
				t.Fatalf("node %s opens when %v have proven the login", n.Name, proven)
			}
		}
		if len(made.Writes) == 0 {
			break
		}
	}
	w.wantOpen()
	if want := []v1alpha1.OperationType{v1alpha1.OperationRebuild, v1alpha1.OperationRepair,
		v1alpha1.OperationProveLogin}; !slices.Equal(did, want) {
		t.Errorf("the datacenter did %v, want %v", did, want)
	}
}

// What a ring cannot be made with is refused before anything forms, by the field's name.
func TestPasswordsAreRefusedBeforeTheRingForms(t *testing.T) {
	secret := func(change func(map[string][]byte)) *corev1.Secret {
		s := &corev1.Secret{Data: map[string][]byte{"username": []byte("admin"), "password": []byte("secret")}}
		change(s.Data)
		return s
	}
	for want, s := range map[string]*corev1.Secret{
		"is mine, and there is no such Secret":    nil,
		"has no username: it must have one":       secret(func(d map[string][]byte) { delete(d, "username") }),
		"has no password: it must have one":       secret(func(d map[string][]byte) { d["password"] = nil }),
		"of 73 bytes: it must have 1 to 72":       secret(func(d map[string][]byte) { d["password"] = make([]byte, 73) }),
		"the username cassandra: it must be":      secret(func(d map[string][]byte) { d["username"] = []byte("cassandra") }),
		"the username helenus_root: it must":      secret(func(d map[string][]byte) { d["username"] = []byte("helenus_root") }),
		"the username helenus_operator: it must":  secret(func(d map[string][]byte) { d["username"] = []byte("helenus_operator") }),
		"and neither quotes nor control":          secret(func(d map[string][]byte) { d["username"] = []byte("a\nb") }),
		"has a NUL in its password, which ends a": secret(func(d map[string][]byte) { d["password"] = []byte("a\x00b") }),
	} {
		w := withPasswords(t)
		securedBy(v1alpha1.Authentication{Superuser: &v1alpha1.Superuser{SecretName: "mine"}})(&w.snapshot.Cluster.Spec)
		if w.snapshot.Passwords.Superuser = s; s != nil {
			w.snapshot.Passwords.Problem = render.SuperuserProblem(s)
		}
		wantStalled(t, w.settle(), v1alpha1.ReasonInvalidSpec, "spec.security.authentication.superuser.secretName",
			want)
		if w.snapshot.Ledger.Step != nil || len(w.snapshot.Records()) > 0 {
			t.Errorf("%s: something is made", want)
		}
		// Put right, it is taken.
		w.snapshot.Passwords.Superuser, w.snapshot.Passwords.Problem = secret(func(map[string][]byte) {}), ""
		w.settle()
		w.wantOpen()
		if got := w.snapshot.Ledger.MadeWith.SuperuserSecret; got != "mine" {
			t.Errorf("the ring is made with the superuser of Secret %q", got)
		}
	}
}

// A ring that serves gets passwords node by node: none is asked for before the roles are made, and
// others follow the first when a person says so, also when the ledger is lost in between.
func TestAServingRingGetsPasswords(t *testing.T) {
	for _, lost := range []bool{false, true} {
		w := formed(t)
		w.change(securedBy(v1alpha1.Authentication{Mode: v1alpha1.AuthenticationPassword}))
		waits := func(made plan.Plan) {
			if all := reported(made); len(all) != 1 || all[0].Reason != v1alpha1.BlockedRolesNotReady {
				t.Fatalf("lost %v: reported %+v:\n%s", lost, all, made)
			}
		}
		waits(w.settle())
		if lost {
			w.snapshot.Ledger = nil
			waits(w.settle())
		}
		asking := func() (names []string) {
			for _, n := range w.snapshot.Records() {
				asks := n.Record.Spec.Configuration.Authentication == v1alpha1.AuthenticationPassword
				if asks {
					names = append(names, n.Name)
				}
				if asks != (n.Record.Spec.ClientTraffic == v1alpha1.TrafficAdministrative) {
					t.Errorf("node %s asks: %v, and is %s", n.Name, asks, n.Record.Spec.ClientTraffic)
				}
			}
			return names
		}
		first := asking()
		if len(first) != 1 {
			t.Fatalf("%v ask for passwords", first)
		}
		w.change(func(s *v1alpha1.CassandraClusterSpec) {
			s.Exceptions = []v1alpha1.Exception{{Name: "ready", Type: v1alpha1.ExceptionRolesReady, Node: first[0],
				Reason: "x", Until: metav1.NewTime(w.now.Add(time.Hour))}}
		})
		w.rolledOut()
		w.wantOpen()
		w.settle()
		if l := w.snapshot.Ledger; l.Authentication != nil ||
			l.MadeWith.Authentication != v1alpha1.AuthenticationPassword || l.MadeWith.SuperuserSecret != "orders-superuser" {
			t.Errorf("lost %v: the ledger says %+v, made with %+v", lost, l.Authentication, l.MadeWith)
		}
		if p := w.snapshot.Passwords.Applied; p == nil || p.Annotations[v1alpha1.AnnotationAppliedAt] == "" {
			t.Errorf("lost %v: no login is proven on every node", lost)
		}
	}
}

// A ring stops asking only if a person has allowed it.
func TestPasswordsAreTurnedOff(t *testing.T) {
	w := withPasswords(t)
	w.settle()
	w.change(securedBy(v1alpha1.Authentication{Mode: v1alpha1.AuthenticationNone}))
	wantStalled(t, w.pass(), v1alpha1.ReasonUnsupportedChange, "by an exception of type TurnOffPassword")
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		s.Exceptions = []v1alpha1.Exception{{Name: "off", Type: v1alpha1.ExceptionTurnOffPassword, Reason: "x",
			Until: metav1.NewTime(w.now.Add(time.Hour))}}
	})
	w.pass()
	if made := w.pass(); !slices.ContainsFunc(made.Notices, func(n v1alpha1.Notice) bool {
		return n.Reason == v1alpha1.NoticePasswordsTurnedOff
	}) {
		t.Errorf("nobody is told:\n%s", made)
	}
	w.rolledOut()
	for _, n := range w.snapshot.Records() {
		if got := n.Record.Spec.Configuration.Authentication; got != v1alpha1.AuthenticationNone {
			t.Errorf("node %s has %s", n.Name, got)
		}
	}
	w.settle()
	if l := w.snapshot.Ledger; l.Authentication != nil || l.MadeWith.Authentication != v1alpha1.AuthenticationNone {
		t.Errorf("the ledger says %+v, made with %+v", l.Authentication, l.MadeWith)
	}
}

// A ring that exists stays as it was made, and says so to who asks for something else.
func TestHowARingWasMadeStays(t *testing.T) {
	w := withPasswords(t)
	w.settle()
	for want, a := range map[string]v1alpha1.Authentication{
		"security.authentication.mode: Password → None": {Mode: v1alpha1.AuthenticationNone},
		"security.authentication.superuser.secretName: orders-superuser → mine": {
			Superuser: &v1alpha1.Superuser{SecretName: "mine"}},
	} {
		w.change(securedBy(a))
		made := w.pass()
		wantStalled(t, made, v1alpha1.ReasonUnsupportedChange, want)
		if len(made.Writes) > 0 {
			t.Errorf("%s: something is written:\n%s", want, made)
		}
	}
}

// A ring that an earlier release has made asks for no password, whatever is the default now, and
// nothing of it is written.
func TestAnOlderRingStaysAsItIs(t *testing.T) {
	w := formed(t)
	w.snapshot.Cluster.Spec.Security = nil
	w.snapshot.Ledger.MadeWith = nil
	for _, n := range w.snapshot.Records() {
		n.Record.Spec.Configuration.Authentication, n.Hashes = "", nil
	}
	if made := next(w); len(made.Writes) > 0 || made.Stalled != nil {
		t.Errorf("want nothing:\n%s", made)
	}
	// Nor when its ledger is lost, although its records are all that is left.
	w.snapshot.Ledger = nil
	w.settle()
	if w.snapshot.Ledger.MadeWith != nil || w.snapshot.Passwords.Roles != nil {
		t.Errorf("the ring is taken for one with %+v", w.snapshot.Ledger.MadeWith)
	}
}

// Passwords that are lost are not made again once they may be on a disk: what runs keeps running.
func TestLostPasswordsAreNotMadeAgain(t *testing.T) {
	w := withPasswords(t)
	w.settle()
	w.snapshot.Passwords.Roles = nil
	made := w.pass()
	if len(made.Writes) > 0 || len(made.Blocked) != 1 ||
		made.Blocked[0].Reason != v1alpha1.BlockedPasswordsMissing {
		t.Errorf("blocked %+v:\n%s", made.Blocked, made)
	}
	// Before that they are.
	w = withPasswords(t)
	for range 100 {
		w.pass()
		if s := w.snapshot.Ledger.Step; s != nil && s.Stage == ledger.StageTickets {
			break
		}
	}
	w.snapshot.Passwords.Superuser = nil
	wantWrites(t, w.pass(), "orders-superuser", "MakePasswords Secret")
}

// With a lost ledger the records say how the ring was made.
func TestALostLedgerIsRebuiltWithPasswords(t *testing.T) {
	w := withPasswords(t)
	w.settle()
	w.snapshot.Ledger = nil
	made := w.settle()
	if l := w.snapshot.Ledger; l.MadeWith == nil || l.MadeWith.Authentication != v1alpha1.AuthenticationPassword {
		t.Errorf("the ring is taken for one with %+v:\n%s", l.MadeWith, made)
	}
}

// Disks that are adopted ask for what they were made with: the Secret of their roles tells.
func TestAdoptedDisksKeepTheirPasswords(t *testing.T) {
	for name, c := range map[string]struct {
		roles bool
		asked v1alpha1.AuthenticationMode
		want  v1alpha1.AuthenticationMode
		stall string
	}{
		"with the Secret":                 {true, "", v1alpha1.AuthenticationPassword, ""},
		"without":                         {false, "", v1alpha1.AuthenticationNone, ""},
		"with it, although None is asked": {true, v1alpha1.AuthenticationNone, "", "since Secret orders-roles is there"},
		"without, although it is asked":   {false, v1alpha1.AuthenticationPassword, "", "Secret orders-roles is not there"},
	} {
		t.Run(name, func(t *testing.T) {
			old := retained(t)
			w := asSuccessor(t, old, old.snapshot.Cluster.UID)
			w.snapshot.Cluster.Spec.Security = nil
			if c.asked != "" {
				securedBy(v1alpha1.Authentication{Mode: c.asked})(&w.snapshot.Cluster.Spec)
			}
			if c.roles {
				w.snapshot.Passwords.Roles = render.RolesSecret(render.OwnerOf(old.snapshot.Cluster))
				w.snapshot.Passwords.Superuser = render.SuperuserSecret(render.OwnerOf(old.snapshot.Cluster))
			}
			made := w.pass()
			for len(made.Writes) > 0 {
				w.disks()
				made = w.pass()
			}
			if c.stall != "" {
				wantStalled(t, made, v1alpha1.ReasonInvalidSpec, "security.authentication.mode is", c.stall)
				return
			}
			if got := w.snapshot.Ledger.MadeWith; got == nil || got.Authentication != c.want {
				t.Errorf("adopted with %+v, want %s:\n%s", got, c.want, made)
			}
		})
	}
}

// Passwords that an earlier cluster has left with its disks stay when one of the same name goes
// that could not use them.
func TestPasswordsOfAnEarlierClusterStay(t *testing.T) {
	old := retained(t)
	w := asSuccessor(t, old, "")
	w.snapshot.Cluster.Spec.Security = nil
	w.snapshot.Passwords.Roles = render.RolesSecret(render.OwnerOf(old.snapshot.Cluster))
	wantStalled(t, w.settle(), v1alpha1.ReasonForeignDisks)
	w.snapshot.Cluster.Spec.Volumes.OnClusterDeletion = v1alpha1.ClaimDelete
	now := w.snapshot.Cluster.CreationTimestamp
	w.snapshot.Cluster.DeletionTimestamp = &now
	for len(w.snapshot.Cluster.Finalizers) != 0 {
		for _, write := range w.pass().Writes {
			if write.Verb == plan.Delete && write.Object.GetName() == "orders-roles" {
				t.Fatalf("%s", write)
			}
		}
	}
}

// Passwords go with the disks, and not before.
func TestPasswordsGoWithTheClaims(t *testing.T) {
	for policy, gone := range map[v1alpha1.ClaimPolicy]bool{v1alpha1.ClaimDelete: true, v1alpha1.ClaimRetain: false} {
		w := withPasswords(t)
		w.settle()
		w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Volumes.OnClusterDeletion = policy })
		now := w.snapshot.Cluster.CreationTimestamp
		w.snapshot.Cluster.DeletionTimestamp = &now
		deleted := map[string]bool{}
		for range 50 {
			made := w.pass()
			for _, write := range made.Writes {
				if write.Verb == plan.Delete && plan.KindOf(write.Object) == "Secret" {
					deleted[write.Object.GetName()] = true
				}
			}
			if len(made.Writes) == 0 || len(w.snapshot.Cluster.Finalizers) == 0 {
				break
			}
		}
		if deleted["orders-roles"] != gone || deleted["orders-superuser"] != gone {
			t.Errorf("%s: deleted %v", policy, deleted)
		}
	}
}
