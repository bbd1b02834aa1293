package act

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/plan"
)

func TestAPodIsDeletedByForceOnlyFromAHostThatIsGone(t *testing.T) {
	host := func(name string, ready corev1.ConditionStatus, taints ...string) *corev1.Node {
		m := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		m.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
		for _, key := range taints {
			m.Spec.Taints = append(m.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute})
		}
		return m
	}
	on := func(name string) *corev1.Pod {
		p := pod("orders-0")
		p.UID, p.Spec.NodeName = "seen", name
		return p
	}
	another := on("m")
	another.UID = "another"
	for name, c := range map[string]struct {
		objects []client.Object
		gone    bool
	}{
		"it has no Node object": {[]client.Object{on("m"), host("other", corev1.ConditionTrue)}, true},
		"it is out of service": {[]client.Object{on("m"),
			host("m", corev1.ConditionUnknown, corev1.TaintNodeOutOfService)}, true},
		"it is out of service and says so": {[]client.Object{on("m"),
			host("m", corev1.ConditionFalse, corev1.TaintNodeOutOfService)}, true},
		"it is silent": {[]client.Object{on("m"),
			host("m", corev1.ConditionUnknown, corev1.TaintNodeUnreachable)}, false},
		"it is ready, with a taint left over": {[]client.Object{on("m"),
			host("m", corev1.ConditionTrue, corev1.TaintNodeOutOfService)}, false},
		"it is ready": {[]client.Object{on("m"), host("m", corev1.ConditionTrue)}, false},
		"the pod is on another host by now": {[]client.Object{on("other"), host("other", corev1.ConditionUnknown)},
			false},
		"it is another pod of the name by now": {[]client.Object{another}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := writer(t, interceptor.Funcs{}, c.objects...)
			plan := plan.Plan{Writes: []plan.Write{{Verb: plan.DeleteByForce, Object: pod("orders-0"), UID: "seen",
				Host: "m"}}}
			done := w.Do(t.Context(), snapshot(), plan, confirmed, &consistency.Store{})
			err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "orders-0"}, &corev1.Pod{})
			switch {
			case c.gone && (done.Err != nil || !apierrors.IsNotFound(err)):
				t.Errorf("%v, and then %v: want the pod gone", done.Err, err)
			case !c.gone && (!apierrors.IsConflict(done.Err) || err != nil):
				t.Errorf("%v, and then %v: want a conflict, and the pod there", done.Err, err)
			}
		})
	}
	for name, write := range map[string]plan.Write{
		"without a uid":  {Verb: plan.DeleteByForce, Object: pod("orders-0"), Host: "m"},
		"without a host": {Verb: plan.DeleteByForce, Object: pod("orders-0"), UID: "seen"},
	} {
		w := writer(t, interceptor.Funcs{}, on("m"))
		if done := w.Do(t.Context(), snapshot(), plan.Plan{Writes: []plan.Write{write}}, confirmed,
			&consistency.Store{}); done.Err == nil {
			t.Errorf("%s: the pod was deleted", name)
		}
	}
}
