package observe

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"helenus.io/helenus/internal/threads"
)

// instant are threads for which no time passes while they wait for a while.
type instant struct{ threads.Goroutines }

func (instant) Wait(ctx context.Context, _ time.Duration, s *threads.Signal) {
	threads.Goroutines{}.Wait(ctx, 10*time.Millisecond, s)
}

// A cluster is woken when a Secret that it has read is changed, deleted or made, and only then. It
// is read again by the next pass.
func TestLookout(t *testing.T) {
	secret := func() *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-superuser"}}
	}
	looks := make(chan struct{})
	c := fake.NewClientBuilder().WithObjects(secret()).Build()
	counted := interceptor.NewClient(c, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch,
		key client.ObjectKey, into client.Object, o ...client.GetOption) error {
		select {
		case looks <- struct{}{}:
		case <-ctx.Done():
		}
		return c.Get(ctx, key, into, o...)
	}})
	cluster := types.NamespacedName{Namespace: "shop", Name: "orders"}
	woken, changed := make(chan types.NamespacedName, 100), make(chan string, 100)
	l := &Lookout{Live: counted, Threads: instant{}, Wake: func(key types.NamespacedName) { woken <- key }}
	version := func() string {
		now := secret()
		if err := c.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: now.Name}, now); err != nil {
			return ""
		}
		return now.ResourceVersion
	}
	passes := func() {
		l.keep(cluster, map[string]string{"orders-superuser": version()}, func(name string) { changed <- name })
	}
	for _, do := range []func() error{
		func() error { return nil },
		func() error { return c.Update(t.Context(), secret()) },
		func() error { return c.Delete(t.Context(), secret()) },
		func() error { return c.Create(t.Context(), secret()) },
	} {
		before := version()
		if err := do(); err != nil {
			t.Fatal(err)
		}
		for version() != before && len(woken) == 0 {
			<-looks
		}
		passes()
		for range 2 { // the first may have been under way
			<-looks
		}
		for len(woken) > 0 {
			if got, name := <-woken, <-changed; got != cluster || name != "orders-superuser" {
				t.Errorf("woken is %s, for %s", got, name)
			}
		}
		for range 3 {
			<-looks
		}
		if len(woken) > 0 {
			t.Error("woken, and nothing happened")
		}
	}
	l.keep(cluster, nil, nil)
	if len(l.looks) > 0 {
		t.Error("a cluster that is gone is looked at")
	}
}
