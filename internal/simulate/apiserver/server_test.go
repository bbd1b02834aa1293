package apiserver_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/simulate/apiserver"
)

// The answers are compared with those of a real server in test/api/compare. Here is what that
// cannot see: views that lag, time, and what stands between a request and its effect.

const namespace = "shop"

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func compile(t *testing.T) *apiserver.Kinds {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, clientgoscheme.AddToScheme(scheme))
	must(t, v1alpha1.AddToScheme(scheme))
	paths, err := filepath.Glob("../../../config/crd/*.yaml")
	must(t, err)
	var definitions []*apiextensionsv1.CustomResourceDefinition
	for _, path := range paths {
		text, err := os.ReadFile(path)
		must(t, err)
		d := &apiextensionsv1.CustomResourceDefinition{}
		must(t, yaml.UnmarshalStrict(text, d))
		definitions = append(definitions, d)
	}
	kinds, err := apiserver.Compile(scheme, definitions)
	must(t, err)
	return kinds
}

func newServer(t *testing.T) *apiserver.Server {
	t.Helper()
	made := 0
	s := apiserver.New(compile(t), apiserver.Options{Now: func() time.Time { return now }, NewUID: func() types.UID {
		made++
		return types.UID(fmt.Sprintf("uid-%d", made))
	}})
	c := s.As("test")
	must(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	must(t, c.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
		Name: "default"}}))
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func configMap(name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
}

func all(client.Object) bool { return true }

func whole(o client.Object) client.Object { return o }

// TestCacheShowsOutlines: of each object a cache has what its outline leaves, whether it was there
// at first, came, or changed; the server has all of it.
func TestCacheShowsOutlines(t *testing.T) {
	s := newServer(t)
	c := s.As("test")
	first, second := configMap("first", nil), configMap("second", nil)
	first.Data, second.Data = map[string]string{"large": "1"}, map[string]string{"large": "2"}
	must(t, c.Create(t.Context(), first))
	cache := apiserver.NewCache(s, all, func(o client.Object) client.Object {
		return configMap(o.GetName(), o.GetLabels())
	})
	must(t, c.Create(t.Context(), second))
	second.Labels = map[string]string{"color": "red"}
	must(t, c.Update(t.Context(), second))
	for _, e := range cache.Deliver("ConfigMap", 2) {
		if data := e.New.(*corev1.ConfigMap).Data; data != nil {
			t.Errorf("%s tells of %v", e.Type, data)
		}
	}
	for _, object := range []*corev1.ConfigMap{first, second} {
		var shown, stored corev1.ConfigMap
		must(t, cache.Get(t.Context(), client.ObjectKeyFromObject(object), &shown))
		must(t, c.Get(t.Context(), client.ObjectKeyFromObject(object), &stored))
		if shown.Data != nil || shown.Labels["color"] != object.Labels["color"] || len(stored.Data) != 1 {
			t.Errorf("%s: shown %v with labels %v, stored %v", object.Name, shown.Data, shown.Labels, stored.Data)
		}
	}
}

// TestCacheShowsItsSelection: what comes to be selected is added for a cache, and what is selected
// no more is deleted, whatever it is for the server.
func TestCacheShowsItsSelection(t *testing.T) {
	s := newServer(t)
	c := s.As("test")
	cache := apiserver.NewCache(s, func(o client.Object) bool { return o.GetLabels()["ours"] == "yes" }, whole)
	object := configMap("x", nil)
	must(t, c.Create(t.Context(), object))
	for _, labels := range []map[string]string{{"ours": "yes"}, {"ours": "yes", "color": "red"}, nil} {
		object.Labels = labels
		must(t, c.Update(t.Context(), object))
	}
	must(t, c.Delete(t.Context(), object))
	var got []apiserver.EventType
	for _, e := range cache.Deliver("ConfigMap", 5) {
		got = append(got, e.Type)
	}
	if want := []apiserver.EventType{apiserver.Added, apiserver.Modified, apiserver.Deleted}; !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
}

// TestCacheLags: a cache shows a change when it is told, and not before.
func TestCacheLags(t *testing.T) {
	s := newServer(t)
	cache := apiserver.NewCache(s, all, whole)
	must(t, s.As("test").Create(t.Context(), configMap("x", nil)))
	key := types.NamespacedName{Namespace: namespace, Name: "x"}
	if err := cache.Get(t.Context(), key, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("before it is told: %v, want not found", err)
	}
	cache.Deliver("ConfigMap", 1)
	must(t, cache.Get(t.Context(), key, &corev1.ConfigMap{}))
}

// TestSharedObjectsAreNotWritten: who changes what every reader shares is told so: the views of all
// would show the change before they are told of it.
func TestSharedObjectsAreNotWritten(t *testing.T) {
	s := newServer(t)
	must(t, s.As("test").Create(t.Context(), configMap("x", nil)))
	shared := s.Object("ConfigMap", types.NamespacedName{Namespace: namespace, Name: "x"})
	if err := s.As("test").Update(t.Context(), shared); err == nil || !strings.Contains(err.Error(), "change a copy") {
		t.Errorf("it is written: %v", err)
	}
	must(t, s.As("test").Update(t.Context(), shared.DeepCopyObject().(client.Object)))
}

// lost answers a request with an error, after its effect.
type lost struct{}

func (lost) Before(*apiserver.Request) error { return nil }

func (lost) After(r *apiserver.Request, err error) error {
	return errors.Join(err, apiserver.ClientTimeout(r))
}

// TestAnswerIsLost: an interceptor can take an answer away; what was done stays done, and the
// caller's object stays as it was.
func TestAnswerIsLost(t *testing.T) {
	s := newServer(t)
	s.Intercept(lost{})
	object := configMap("x", nil)
	if err := s.As("test").Create(t.Context(), object); err == nil {
		t.Fatal("the answer came")
	}
	if object.UID != "" {
		t.Errorf("the caller was told the uid %s", object.UID)
	}
	if s.Object("ConfigMap", client.ObjectKeyFromObject(object)) == nil {
		t.Error("nothing was made")
	}
}

// TestPodEndsInItsTime: a pod on a host is marked until kubelet says that it has ended; one without
// a host is gone at once.
func TestPodEndsInItsTime(t *testing.T) {
	for name, host := range map[string]string{"placed": "m1", "waiting": ""} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			c := s.As("test")
			pod := pod("x")
			must(t, c.Create(t.Context(), pod))
			if host != "" {
				must(t, c.SubResource("binding").Create(t.Context(), pod,
					&corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: host}}))
			}
			must(t, c.Delete(t.Context(), pod))
			object := s.Object("Pod", client.ObjectKeyFromObject(pod))
			if host == "" {
				if object != nil {
					t.Error("it is still there")
				}
				return
			}
			if want := now.Add(30 * time.Second); object == nil || !object.GetDeletionTimestamp().Time.Equal(want) {
				t.Fatalf("it is %v, want one that has until %v", object, want)
			}
			must(t, c.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
			if s.Object("Pod", client.ObjectKeyFromObject(pod)) != nil {
				t.Error("it is there after kubelet has ended it")
			}
		})
	}
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "x"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "x"}}},
	}
}

// TestEvictionTakesFromTheBudget: of two pods that run, one can be evicted, and the other not until
// the budget is reviewed.
func TestEvictionTakesFromTheBudget(t *testing.T) {
	s := newServer(t)
	c := s.As("test")
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
		},
	}
	must(t, c.Create(t.Context(), budget))
	budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: 1, CurrentHealthy: 2,
		DesiredHealthy: 1, ExpectedPods: 2}
	must(t, c.Status().Update(t.Context(), budget))
	evict := func(name string) error {
		p := pod(name)
		must(t, c.Create(t.Context(), p))
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		must(t, c.Status().Update(t.Context(), p))
		return c.SubResource("eviction").Create(t.Context(), p, &policyv1.Eviction{})
	}
	must(t, evict("a"))
	if err := evict("b"); !apierrors.IsTooManyRequests(err) {
		t.Errorf("the second eviction: %v, want too many requests", err)
	}
}

// TestCollector: what has no owner left goes, and what has one stays.
func TestCollector(t *testing.T) {
	s := newServer(t)
	c := s.As("test")
	owner := configMap("owner", nil)
	must(t, c.Create(t.Context(), owner))
	for name, uid := range map[string]types.UID{"kept": owner.UID, "orphan": "nobody"} {
		object := configMap(name, nil)
		object.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: uid}}
		must(t, c.Create(t.Context(), object))
	}
	apiserver.NewCollector(s).Collect()
	for name, want := range map[string]bool{"kept": true, "orphan": false} {
		if got := s.Object("ConfigMap", types.NamespacedName{Namespace: namespace, Name: name}) != nil; got != want {
			t.Errorf("%s is there: %t, want %t", name, got, want)
		}
	}
}
