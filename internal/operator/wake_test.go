package operator

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"helenus.io/helenus/api/v1alpha1"
)

func TestAHostWakesTheClustersOnIt(t *testing.T) {
	pod := func(name, cluster, host string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
				Labels: map[string]string{v1alpha1.LabelCluster: cluster}},
			Spec: corev1.PodSpec{NodeName: host},
		}
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	view := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		pod("a-0", "a", "m1"), pod("a-1", "a", "m2"), pod("b-0", "b", "m2"), pod("c-0", "c", ""), pod("d-0", "d", "m1"),
		pod("d-1", "d", "m1"),
	).Build()
	host := func(change func(*corev1.Node)) *corev1.Node {
		m := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m1", UID: "one", Labels: map[string]string{"zone": "a"}}}
		m.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
			{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse}}
		if change != nil {
			change(m)
		}
		return m
	}
	silent := func(m *corev1.Node) { m.Status.Conditions[0].Status = corev1.ConditionUnknown }
	taint := func(key string) func(*corev1.Node) {
		return func(m *corev1.Node) { silent(m); m.Spec.Taints = []corev1.Taint{{Key: key}} }
	}
	for name, c := range map[string]struct {
		old, now *corev1.Node
		wakes    bool
	}{
		"is new":                 {nil, host(nil), true},
		"is gone":                {host(nil), nil, true},
		"falls silent":           {host(nil), host(silent), true},
		"is silent from now on":  {host(func(m *corev1.Node) { m.Status.Conditions = nil }), host(silent), false},
		"is out of service":      {host(silent), host(taint(corev1.TaintNodeOutOfService)), true},
		"has another taint":      {host(silent), host(taint(corev1.TaintNodeUnreachable)), false},
		"is another of the name": {host(nil), host(func(m *corev1.Node) { m.UID = "two" }), true},
		"is cordoned":            {host(nil), host(func(m *corev1.Node) { m.Spec.Unschedulable = true }), true},
		"has another label":      {host(nil), host(func(m *corev1.Node) { m.Labels["zone"] = "b" }), true},
		"is alive": {host(nil), host(func(m *corev1.Node) {
			m.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
		}), false},
		"is short of disk": {host(nil), host(func(m *corev1.Node) {
			m.Status.Conditions[1].Status = corev1.ConditionTrue
		}), false},
	} {
		var old, now client.Object
		if c.old != nil {
			old = c.old
		}
		if c.now != nil {
			now = c.now
		}
		var want []types.NamespacedName
		if c.wakes {
			for _, cluster := range []string{"a", "c", "d"} {
				want = append(want, types.NamespacedName{Namespace: "shop", Name: cluster})
			}
		}
		if got := Wakes(view, old, now); !slices.Equal(got, want) {
			t.Errorf("a host that %s wakes %v, want %v", name, got, want)
		}
	}
}

// A schedule waits for its cluster, and makes nothing for one that is being deleted.
func TestAClusterWakesItsSchedules(t *testing.T) {
	schedule := func(namespace, name, cluster string) *v1alpha1.CassandraTaskSchedule {
		return &v1alpha1.CassandraTaskSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: v1alpha1.CassandraTaskScheduleSpec{Cluster: v1alpha1.TaskCluster{Name: cluster}}}
	}
	ofBackups := &v1alpha1.CassandraBackupSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "d"},
		Spec: v1alpha1.CassandraBackupScheduleSpec{Cluster: v1alpha1.TaskCluster{Name: "orders"},
			Store: v1alpha1.BackupStoreReference{Name: "main"}}}
	view := reading(t, schedule("shop", "a", "orders"), schedule("shop", "b", "carts"),
		schedule("other", "c", "orders"), ofBackups)
	cluster := &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}
	want := []types.NamespacedName{{Namespace: "shop", Name: "a"}}
	if got := keys(ofSchedules(view, taskSchedules)(t.Context(), cluster)); !slices.Equal(got, want) {
		t.Errorf("wakes %v, want %v", got, want)
	}
	store := &v1alpha1.CassandraBackupStore{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "main"}}
	want = []types.NamespacedName{{Namespace: "shop", Name: "d"}}
	for _, of := range []client.Object{cluster, store} {
		if got := keys(ofSchedules(view, backupSchedules)(t.Context(), of)); !slices.Equal(got, want) {
			t.Errorf("wakes %v, want %v", got, want)
		}
	}
	deleting := cluster.DeepCopy()
	deleting.DeletionTimestamp = &metav1.Time{}
	for now, wakes := range map[*v1alpha1.CassandraCluster]bool{cluster: false, deleting: true} {
		if comesOrGoes().Update(event.UpdateEvent{ObjectOld: cluster, ObjectNew: now}) != wakes {
			t.Errorf("%+v wakes %t", now.ObjectMeta, !wakes)
		}
	}
}
