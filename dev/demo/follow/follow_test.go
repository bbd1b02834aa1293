package follow

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func quiet() *Namespace { return &Namespace{Name: "shop", changed: make(chan struct{})} }

// long is a bound that is not reached.
const long = time.Hour

func TestAWaitLooksAgainAtEveryEvent(t *testing.T) {
	n := quiet()
	looked := make(chan int)
	done := make(chan error)
	go func() {
		times := 0
		done <- n.Until(context.Background(), long, "it was looked at three times", func(Sight) error {
			times++
			looked <- times
			if times < 3 {
				return errors.New("too few")
			}
			return nil
		})
	}()
	for range 2 {
		<-looked
		n.OnAdd(&corev1.Pod{}, false)
	}
	if got := <-looked; got != 3 {
		t.Errorf("looked %d times, want 3", got)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAWaitEndsWithWhatWasMissing(t *testing.T) {
	missing := errors.New("two of three")
	err := quiet().Until(context.Background(), time.Nanosecond, "all are there", func(Sight) error { return missing })
	if !errors.Is(err, missing) || !strings.Contains(err.Error(),
		"wait until all are there: not within 1ns: two of three") {
		t.Errorf("error %v", err)
	}
}

func TestAWaitForWhatCannotComeEndsAtOnce(t *testing.T) {
	broken := errors.New("the image does not exist")
	err := quiet().Until(context.Background(), long, "it runs", func(Sight) error { return Never(broken) })
	if !errors.Is(err, broken) || strings.Contains(err.Error(), "not within") {
		t.Errorf("error %v", err)
	}
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	ctx, stop := context.WithCancelCause(context.Background())
	stop(errors.New("the user has had enough"))
	err := quiet().Until(ctx, long, "it runs", func(Sight) error { return errors.New("it does not") })
	if err == nil || !strings.Contains(err.Error(), "had enough") {
		t.Errorf("error %v", err)
	}
}

func TestEventsAreToldAsTheyAre(t *testing.T) {
	var told []Event
	n := quiet()
	n.watchers = []func(Event){func(e Event) { told = append(told, e) }}
	old, now := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	n.OnAdd(now, true)
	n.OnUpdate(old, now)
	n.OnDelete(old)
	n.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: old})
	want := []struct{ old, now client.Object }{{nil, now}, {old, now}, {old, nil}, {old, nil}}
	if len(told) != len(want) {
		t.Fatalf("%d events, want %d", len(told), len(want))
	}
	for i, e := range told {
		if e.Old != want[i].old || e.New != want[i].now {
			t.Errorf("event %d is %+v, want %+v", i, e, want[i])
		}
		if e.Object() == nil {
			t.Errorf("event %d has no object", i)
		}
	}
}

func TestPodTrouble(t *testing.T) {
	waiting := func(reason, message string) corev1.PodStatus {
		return corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{
			Name: "agent", Image: "r/agent:1", State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message},
			},
		}}}
	}
	for _, c := range []struct {
		name    string
		status  corev1.PodStatus
		trouble string
		pull    bool
	}{
		{"runs", corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{}}}, "", false},
		{"is being made", waiting("ContainerCreating", ""), "", false},
		{"no machine", corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled,
			Status: corev1.ConditionFalse, Message: "0/3"}}}, "waits for a machine: 0/3", false},
		{"the first failure to pull may pass", waiting("ErrImagePull", "timeout"),
			"cannot pull image r/agent:1: timeout", false},
		{"no image", waiting("ImagePullBackOff", "not found"), "cannot pull image r/agent:1: not found", true},
		{"crashes", waiting("CrashLoopBackOff", "back-off 10s"), "container agent: CrashLoopBackOff: back-off 10s",
			false},
	} {
		if trouble, pull := PodTrouble(&corev1.Pod{Status: c.status}); trouble != c.trouble || pull != c.pull {
			t.Errorf("%s: %q, %v; want %q, %v", c.name, trouble, pull, c.trouble, c.pull)
		}
	}
}
