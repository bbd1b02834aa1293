package observe

import (
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/internal/threads"
)

// lookEvery is how often the Secrets of people are looked at between passes, and looksASecond how
// many there are of such looks in a second at most, of all clusters together.
const (
	lookEvery    = 2 * time.Second
	looksASecond = 10
)

// Lookout looks at the Secrets of people whose change the operator is not told, since it may not
// watch any, and wakes the cluster. It reads what identifies them alone, and decides nothing.
type Lookout struct {
	// Live reads from the API server itself.
	Live client.Reader
	// Wake is called when a Secret is another than it was.
	Wake func(cluster types.NamespacedName)
	// Threads run and wait.
	Threads threads.Threads

	mutex sync.Mutex
	looks map[types.NamespacedName]*look
	pace  *rate.Limiter
}

// look at the Secrets of a cluster, which had these versions when a pass read them; an empty one
// was not there.
type look struct {
	end      context.CancelFunc
	versions map[string]string
	// changed is told which of them is another one.
	changed func(name string)
}

// keep has the Secrets of a cluster looked at from now on, and no others.
func (l *Lookout) keep(cluster types.NamespacedName, versions map[string]string, changed func(name string)) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	at := l.looks[cluster]
	switch {
	case at == nil && len(versions) == 0:
		return
	case at == nil:
		if l.looks == nil {
			l.looks, l.pace = map[types.NamespacedName]*look{}, rate.NewLimiter(looksASecond, 1)
		}
		ctx, end := context.WithCancel(context.Background())
		at = &look{end: end, changed: changed}
		l.looks[cluster] = at
		l.Threads.Go(func() { l.follow(ctx, cluster, at) })
	case len(versions) == 0:
		at.end()
		delete(l.looks, cluster)
	}
	at.versions = versions
}

func (l *Lookout) follow(ctx context.Context, cluster types.NamespacedName, at *look) {
	for {
		l.Threads.Wait(ctx, lookEvery, nil)
		if ctx.Err() != nil {
			return
		}
		for name := range l.versions(at) {
			if wait := l.pace.ReserveN(l.Threads.Now(), 1).DelayFrom(l.Threads.Now()); wait > 0 {
				l.Threads.Wait(ctx, wait, nil)
			}
			now, known := l.version(ctx, cluster.Namespace, name)
			if was, kept := l.versions(at)[name]; known && kept && now != was {
				at.changed(name)
				l.Wake(cluster)
			}
		}
	}
}

func (l *Lookout) versions(at *look) map[string]string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return maps.Clone(at.versions)
}

// version of a Secret; unknown if the API server does not say.
func (l *Lookout) version(ctx context.Context, namespace, name string) (string, bool) {
	ctx, cancel := l.Threads.WithTimeout(ctx, askPatience)
	defer cancel()
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := l.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, secret)
	return secret.ResourceVersion, err == nil || apierrors.IsNotFound(err)
}
