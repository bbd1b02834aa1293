package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/observe"
	"helenus.io/helenus/internal/simulate/world"
)

// childKinds are the kinds of the objects that a cluster has beside its pods and claims.
var childKinds = []string{"Service", "PodDisruptionBudget", "ServiceAccount", "Role", "RoleBinding", "ConfigMap",
	"Secret", "NetworkPolicy", "CassandraNode"}

// notRecreated are Secrets on which something rests that could not be made again.
var notRecreated = []string{v1alpha1.AuthorityName(clusterName, v1alpha1.UseAgent),
	v1alpha1.AuthorityName(clusterName, v1alpha1.UseInternode),
	v1alpha1.AuthorityName(clusterName, v1alpha1.UseClients), v1alpha1.RolesName(clusterName),
	v1alpha1.SuperuserName(clusterName), v1alpha1.AppliedSuperuserName(clusterName)}

// children are the objects of a kind that belong to the cluster, those aside that are not
// recreated.
func children(w *world.World, kind string) []client.Object {
	var out []client.Object
	c := get(w)
	for _, o := range w.Server.Objects(kind) {
		if c != nil && o.GetNamespace() == world.Namespace && !slices.Contains(notRecreated, o.GetName()) &&
			strings.HasPrefix(o.GetName(), clusterName) {
			out = append(out, o.DeepCopyObject().(client.Object))
		}
	}
	return out
}

// edits are what a user does to an object, by words. Nothing of it is an edit of the user's own,
// which would be left alone.
func edits(o client.Object) map[string]func() {
	out := map[string]func(){
		"take its labels away": func() { o.SetLabels(nil) },
		"take the label away by which the operator watches": func() {
			l := maps.Clone(o.GetLabels())
			delete(l, v1alpha1.LabelManagedBy)
			o.SetLabels(l)
		},
		"take its owner away": func() { o.SetOwnerReferences(nil) },
	}
	switch o := o.(type) {
	case *corev1.Service:
		out["change a port"] = func() { o.Spec.Ports[0].Port++ }
		out["add a port"] = func() {
			o.Spec.Ports = append(o.Spec.Ports, corev1.ServicePort{Name: "debug", Port: 4711,
				Protocol: corev1.ProtocolTCP})
		}
		out["change the selector"] = func() { o.Spec.Selector["team"] = "shop" }
		out["publish otherwise"] = func() { o.Spec.PublishNotReadyAddresses = !o.Spec.PublishNotReadyAddresses }
	case *policyv1.PodDisruptionBudget:
		out["allow none"] = func() { o.Spec.MinAvailable = &intstr.IntOrString{Type: intstr.Int, IntVal: 100} }
		out["allow all"] = func() {
			o.Spec.MinAvailable, o.Spec.MaxUnavailable = nil, &intstr.IntOrString{Type: intstr.String, StrVal: "100%"}
		}
		out["select others"] = func() {
			o.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}
		}
	case *networkingv1.NetworkPolicy:
		out["let everybody in"] = func() {
			o.Spec.Ingress = append(o.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{})
		}
		out["let nobody in"] = func() { o.Spec.Ingress = nil }
		out["close other pods"] = func() { o.Spec.PodSelector = metav1.LabelSelector{} }
	case *corev1.ServiceAccount:
		yes := true
		out["mount its token"] = func() { o.AutomountServiceAccountToken = &yes }
	case *rbacv1.Role:
		out["allow nothing"] = func() { o.Rules = nil }
		out["allow more"] = func() {
			o.Rules = append(o.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"},
				Verbs: []string{"*"}})
		}
	case *rbacv1.RoleBinding:
		out["bind nobody"] = func() { o.Subjects = nil }
		out["bind another"] = func() {
			o.Subjects = append(o.Subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "default",
				Namespace: o.Namespace})
		}
	case *corev1.ConfigMap:
		if o.Name == v1alpha1.LedgerName(clusterName) {
			break // what is written into it cannot be told from what was there
		}
		out["empty it"] = func() { o.Data = nil }
		out["name another seed"] = func() { o.Data[layout.SeedsKey] = "10.99.99.99" }
	case *corev1.Secret:
		out["empty it"] = func() { o.Data = map[string][]byte{corev1.TLSCertKey: {}, corev1.TLSPrivateKeyKey: {}} }
		out["put another key into it"] = func() { o.Data[corev1.TLSPrivateKeyKey] = []byte("key") }
		out["spoil the time of its renewal"] = func() { o.Annotations = nil }
	}
	return out
}

// deleteChildren deletes all objects of a kind, the authority aside.
func deleteChildren(kind string) func(*world.World) error {
	return func(w *world.World) error {
		var errs []error
		for _, o := range children(w, kind) {
			errs = append(errs, client.IgnoreNotFound(w.User().Delete(context.Background(), o)))
		}
		return errors.Join(errs...)
	}
}

// editsOf are the names of the edits of a kind, in a fixed order.
func editsOf(w *world.World, kind string) []string {
	var out []string
	for _, o := range children(w, kind) {
		for name := range edits(o) {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// editChildren does one thing to all objects of a kind that it can be done to.
func editChildren(w *world.World, kind, name string) error {
	var errs []error
	for _, o := range children(w, kind) {
		if do := edits(o)[name]; do != nil {
			do()
			if err := client.IgnoreNotFound(w.User().Update(context.Background(), o)); err != nil {
				errs = append(errs, fmt.Errorf("%s of %s %s: %w", name, kind, o.GetName(), err))
			}
		}
	}
	return errors.Join(errs...)
}

// childScenarios are what people do to the objects of a cluster.
func childScenarios() []*Scenario {
	scenarios := []*Scenario{childrenDeleted(), childrenEdited(), authorityDeleted(), authorityRenewed(),
		authorityEdited(), ledgerSpoiled(), forgotten()}
	for _, s := range scenarios {
		s.Keeps = true
	}
	return scenarios
}

// confined is a ring with all objects that one can have.
var confined = threeRacks.with(confine)

func confine(c *v1alpha1.CassandraCluster) { c.Spec.Security.NetworkPolicy = nil }

func childrenDeleted() *Scenario {
	s := scenario("children-deleted", "somebody deletes the objects of a ring, one kind after the other, and they "+
		"are recreated", confined,
		Act{Name: "look at them", Do: keepEnd})
	for _, kind := range childKinds {
		s.Acts = append(s.Acts, Act{Name: "delete every " + kind, Do: deleteChildren(kind), Until: all(again, asKept),
			Within: 30 * time.Minute})
	}
	return s
}

func childrenEdited() *Scenario {
	s := scenario("children-edited", "somebody edits the objects of a ring, in one way after the other, and they are "+
		"repaired", confined,
		Act{Name: "look at them", Do: keepEnd})
	for _, kind := range append(slices.Clone(childKinds), "Pod", "PersistentVolumeClaim") {
		s.Acts = append(s.Acts, Act{Name: "edit every " + kind, Do: func(w *world.World) error {
			for _, name := range editsOf(w, kind) {
				if err := editChildren(w, kind, name); err != nil {
					return err
				}
				if !w.Line.RunUntil(w.Line.Now().Add(30*time.Minute), func() bool { return asKept(w) }) {
					return fmt.Errorf("%s of every %s is not repaired: %v", name, kind, unlikeKept(w))
				}
			}
			return nil
		}, Until: all(again, asKept), Within: 30 * time.Minute})
	}
	return s
}

func authorityDeleted() *Scenario {
	return scenario("authority-deleted", "somebody deletes the certificate authority of a ring, and puts it back",
		threeRacks,
		Act{Name: "look at it", Do: keepEnd},
		Act{Name: "delete it", Do: deleteAuthority,
			Until: blockedWith("CAMissing", v1alpha1.AuthorityName(clusterName, v1alpha1.UseAgent), "from a backup",
				"kubectl delete secrets"), Within: 30 * time.Minute},
		Act{Name: "restart the operator", Do: restartOperator},
		anHour(blockedWith("CAMissing"), serves(3)),
		Act{Name: "put it back", Do: restoreAuthority, Until: all(again, asKept), Within: 30 * time.Minute})
}

func authorityRenewed() *Scenario {
	return scenario("authority-renewed", "somebody deletes the certificate authority of a ring, and then all "+
		"certificates", threeRacks,
		Act{Name: "look at it", Do: keepEnd},
		Act{Name: "delete it", Do: deleteAuthority, Until: blockedWith("CAMissing"), Within: 30 * time.Minute},
		Act{Name: "delete the certificates", Do: deleteChildren("Secret"), Until: all(again, asKept),
			Within: 30 * time.Minute})
}

func authorityEdited() *Scenario {
	return scenario("authority-edited", "somebody edits the certificate authority of a ring, and puts its content back",
		threeRacks,
		Act{Name: "look at it", Do: keepEnd},
		Act{Name: "edit it", Do: editAuthority(func(s *corev1.Secret) {
			s.Data[corev1.TLSPrivateKeyKey] = append([]byte("x"), s.Data[corev1.TLSPrivateKeyKey]...)
		}),
			Until: blockedWith("CAModified"), Within: 30 * time.Minute},
		Act{Name: "put it back", Do: editAuthority(func(s *corev1.Secret) {
			s.Data[corev1.TLSPrivateKeyKey] = s.Data[corev1.TLSPrivateKeyKey][1:]
		}), Until: all(again, asKept), Within: 30 * time.Minute},
		Act{Name: "take its labels away", Do: editAuthority(func(s *corev1.Secret) { s.Labels = nil }),
			Until: all(again, asKept), Within: 30 * time.Minute})
}

func ledgerSpoiled() *Scenario {
	return scenario("ledger-spoiled", "somebody spoils the ledger of a ring, and deletes it", threeRacks,
		Act{Name: "look at it", Do: keepEnd},
		Act{Name: "spoil it", Do: spoilLedger, Until: stalledWith(v1alpha1.ReasonNameTaken, "delete it", "rebuilt"),
			Within: 30 * time.Minute},
		Act{Name: "delete it", Do: deleteLedger, Until: all(again, asKept), Within: 30 * time.Minute})
}

func deleteLedger(w *world.World) error {
	return w.User().Delete(context.Background(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace,
			Name: v1alpha1.LedgerName(clusterName)}})
}

func forgotten() *Scenario {
	return scenario("forgotten", "somebody deletes all records of a ring, and the ledger before they are recreated: "+
		"who is who, the disks alone know", threeRacks,
		append([]Act{{Name: "look at it", Do: keepEnd}}, forgetting(all(again, asKept), 30*time.Minute)...)...)
}

// forgetting takes from the operator all that it wrote down. It writes down again who is a member
// before it lets go of a record, so both are gone together only if the ledger goes after that.
func forgetting(until func(*world.World) bool, within time.Duration) []Act {
	const had = "records"
	return []Act{
		{Name: "delete every record", Until: lettingGo(had), Within: 10 * time.Minute, Do: func(w *world.World) error {
			w.Notes[had] = strings.Join(recordUIDs(w), " ")
			return deleteChildren("CassandraNode")(w)
		}},
		{Name: "delete the ledger", Do: func(w *world.World) error { return client.IgnoreNotFound(deleteLedger(w)) },
			Until: until, Within: within},
	}
}

// lettingGo says that none of the records that are noted is there any more.
func lettingGo(noted string) func(*world.World) bool {
	return func(w *world.World) bool {
		return !slices.ContainsFunc(recordUIDs(w),
			func(uid string) bool { return slices.Contains(strings.Fields(w.Notes[noted]), uid) })
	}
}

func recordUIDs(w *world.World) []string {
	var out []string
	for _, o := range w.Server.Objects("CassandraNode") {
		out = append(out, string(o.GetUID()))
	}
	return out
}

func authority(w *world.World) *corev1.Secret {
	s, _ := w.Server.Object("Secret", keyOf(v1alpha1.AuthorityName(clusterName, v1alpha1.UseAgent))).(*corev1.Secret)
	return s
}

// deleteAuthority remembers it, as a backup does.
func deleteAuthority(w *world.World) error {
	text, err := json.Marshal(authority(w))
	if err != nil {
		return err
	}
	w.Notes["authority"] = string(text)
	return w.User().Delete(context.Background(), authority(w).DeepCopy())
}

func restoreAuthority(w *world.World) error {
	s := &corev1.Secret{}
	if err := json.Unmarshal([]byte(w.Notes["authority"]), s); err != nil {
		return err
	}
	s.ResourceVersion, s.UID = "", ""
	return w.User().Create(context.Background(), s)
}

func editAuthority(change func(*corev1.Secret)) func(*world.World) error {
	return func(w *world.World) error {
		s := authority(w).DeepCopy()
		change(s)
		return w.User().Update(context.Background(), s)
	}
}

func spoilLedger(w *world.World) error {
	m := w.Server.Object("ConfigMap", keyOf(v1alpha1.LedgerName(clusterName))).(*corev1.ConfigMap).DeepCopy()
	m.Data[ledger.Key] = "{"
	return w.User().Update(context.Background(), m)
}

// stalledWith says that the user must act, for a reason and in words.
func stalledWith(reason string, words ...string) func(*world.World) bool {
	return func(w *world.World) bool {
		c := get(w)
		if c == nil {
			return false
		}
		s := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionStalled)
		return s != nil && s.Reason == reason &&
			!slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(s.Message, word) })
	}
}

// kept is how a world stood when it had come to rest, and how it was unlike that at the last look.
type kept struct {
	end    End
	glance string
	unlike []string
	// texts of the versions of objects that were there at the last look.
	texts map[client.Object]string
	// stays is what the text of an object may have otherwise, as a user has changed it since.
	stays *regexp.Regexp
}

// leaveOut leaves a user's change out of the comparison from now on.
func (k *kept) leaveOut(stays *regexp.Regexp) {
	k.stays, k.end.Objects, k.texts, k.glance = stays, leavingOut(stays, k.end.Objects), nil, ""
}

// keepEnd remembers how the world stands when it has come to rest, and asKept says that it stands
// so again.
func keepEnd(w *world.World) error {
	w.Line.RunFor(2*awayFor + observe.SecretsFor) // whatever a fault has done before
	w.Kept = &kept{end: EndOf(w)}
	return nil
}

func asKept(w *world.World) bool { return len(unlikeKept(w)) == 0 }

func unlikeKept(w *world.World) []string {
	k := w.Kept.(*kept)
	// It is asked after each event: most change nothing that counts, and the others an object or
	// two.
	if glance := fmt.Sprint(w.Server.Revision(), sandboxesOf(w)); glance != k.glance {
		former := k.texts
		k.texts = map[client.Object]string{}
		k.glance, k.unlike = glance, Unlike(endIn(w, func(o client.Object) string {
			text, known := former[o]
			if !known {
				text = normal(o)
				if k.stays != nil {
					text = k.stays.ReplaceAllString(text, "")
				}
			}
			k.texts[o] = text
			return text
		}), k.end)
	}
	return k.unlike
}
