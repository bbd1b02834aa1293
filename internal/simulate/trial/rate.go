package trial

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/simulate/apiserver"
	"helenus.io/helenus/internal/simulate/kube"
)

// pace watches how soon a pod follows one that has failed. Hosts that refuse pods, or evict them,
// must not be flooded with more.
type pace struct {
	*checker
	nodes map[string]*failing
}

// failing is a node whose pods fail.
type failing struct {
	// times in a row, since a pod of the node was ready; last is when the latest failed, of its pod
	// made from template.
	times    int
	last     time.Time
	pod      types.UID
	template string
	// free says that somebody else than the operator removed the failed pod: then another may come
	// at once.
	free bool
}

const (
	firstPause   = 10 * time.Second
	longestPause = 5 * time.Minute
	// seenLate is what the operator's clock may have been cut by, and the time in which it has
	// noticed the failure.
	seenLate = 2 * time.Second
)

func (p *pace) changed(e apiserver.Event, pod *corev1.Pod, byOperator bool) {
	f := p.nodes[pod.Name]
	if f == nil {
		f = &failing{}
		p.nodes[pod.Name] = f
	}
	switch e.Type {
	case apiserver.Added:
		if byOperator {
			p.made(f, pod)
		}
	case apiserver.Modified:
		failed := func(o *corev1.Pod) bool { return o.Status.Phase == corev1.PodFailed }
		switch {
		case failed(pod) && !failed(e.Old.(*corev1.Pod)):
			template := pod.Annotations[v1alpha1.AnnotationTemplateHash]
			if f.template != template {
				f.times = 0 // by another spec it is retried
			}
			f.times++
			f.last, f.pod, f.template, f.free = p.w.Line.Now(), pod.UID, template, false
		case kube.PodReady(pod):
			*f = failing{}
		}
	case apiserver.Deleted:
		f.free = f.free || !byOperator && pod.UID == f.pod
	}
}

func (p *pace) made(f *failing, pod *corev1.Pod) {
	if f.times == 0 || f.free || f.template != pod.Annotations[v1alpha1.AnnotationTemplateHash] ||
		p.Fault != nil && strings.HasPrefix(p.Fault.Kind, "clock-") {
		return
	}
	pause := longestPause
	if f.times < 6 {
		pause = firstPause << (f.times - 1)
	}
	if after := p.w.Line.Now().Sub(f.last); after < pause-seenLate {
		p.violated("pod %s is made %s after it had failed %d times in a row; %s is due", pod.Name, after, f.times,
			pause)
	}
}

// forget starts over for a node whose record is gone: it is where the failures are counted.
func (p *pace) forget(node string) { delete(p.nodes, node) }
