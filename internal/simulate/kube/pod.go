package kube

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/internal/simulate/timeline"
)

// pod is what Kubernetes knows of a pod, and what its host does with it.
type pod struct {
	*Cluster
	// seen is the pod as the API server has it.
	seen *corev1.Pod
	// known is what the host's kubelet last saw of it; nil before it did. A kubelet that is cut off
	// sees nothing new.
	known *corev1.Pod
	// own are the volumes that go with the pod, by name.
	own map[string]*Volume
	// resources are what the containers have, by name; resizing is the resize under way, and
	// putOff why it is none.
	resources map[string]corev1.ResourceRequirements
	resizing  *timeline.Event
	putOff    string
	host      *Host
	// assumed is the host that the scheduler has given it, before the API server's word of that is
	// back.
	assumed string
	address netip.Addr
	sandbox Sandbox
	// containers by name: the sidecars first.
	containers []*container
	// pulled are the images that the host keeps for the pod, as kubelet does, which removes none
	// that a container has, be it one that has ended: when the host comes back no tag is asked for
	// again.
	pulled   map[string]string
	stopping bool
	gone     bool
	// failed says why the pod has failed, or will have when what runs in it has ended; nil if it
	// has not.
	failed    *failure
	kill      *timeline.Event
	syncing   *timeline.Event
	reporting *timeline.Event
}

// container of a pod.
type container struct {
	name    string
	image   string
	imageID string
	sidecar bool
	running bool
	// begun says that it was started at least once, started that its startup probe has passed since
	// it last was.
	begun, started, ready bool
	restarts, starts      int32
	waiting               string
	message               string
	exit                  *corev1.ContainerStateTerminated
	startedAt             time.Time
	again                 *timeline.Event
}

const (
	// firstBackOff and longestBackOff bound the time between restarts of a container that ends
	// again and again.
	firstBackOff   = 10 * time.Second
	longestBackOff = 5 * time.Minute
	// forgetAfter is how long a container must run for its back-off to start over.
	forgetAfter = 10 * time.Minute
	// readyPeriod is the period of the readiness probe that Helenus asks for.
	readyPeriod = 2 * time.Second
)

func (k *Cluster) now() metav1.Time { return metav1.NewTime(k.line.Now()) }

func (p *pod) object() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.seen.Namespace, Name: p.seen.Name}}
}

// hostName is the host that the pod has; empty if it has none yet.
func (p *pod) hostName() string {
	if p.seen.Spec.NodeName != "" {
		return p.seen.Spec.NodeName
	}
	return p.assumed
}

func (k *Cluster) podChanged(o *corev1.Pod, deleted bool) {
	p := k.pods[o.UID]
	if p == nil {
		if deleted {
			return
		}
		p = &pod{Cluster: k, pulled: map[string]string{}, own: map[string]*Volume{}}
		k.pods[o.UID] = p
		k.order = append(k.order, p)
	}
	p.seen = o
	if deleted {
		p.gone = true
		k.order = slices.DeleteFunc(k.order, func(other *pod) bool { return other == p })
		k.reviewClaims(o.Namespace)
	}
	if o.Spec.NodeName == "" || deleted {
		k.place()
	}
	if o.Spec.NodeName != "" {
		p.host = k.host(o.Spec.NodeName)
		p.sync()
	} else if deleted {
		delete(k.pods, o.UID)
	}
}

// sync has kubelet look at the pod soon.
func (p *pod) sync() {
	if p.syncing == nil {
		p.syncing = p.line.After(p.soon(), "kubelet "+p.seen.Name, func() {
			p.syncing = nil
			p.look()
		})
	}
}

// look brings the pod on its host to what the API server wants, as far as kubelet can see that.
func (p *pod) look() {
	m := p.host
	if m == nil || !m.up || !m.linked {
		return
	}
	first := p.known == nil
	p.known = p.seen
	switch {
	case p.gone && p.sandbox == nil:
		delete(p.pods, p.seen.UID)
	case p.gone && p.line.Now().Before(m.lingers):
		p.line.At(m.lingers, "kubelet "+p.seen.Name, p.sync)
	case p.gone:
		// Deleted by force: that goes for the object. What runs has the time to stop that any pod
		// has.
		p.stop()
	case p.failed != nil && p.sandbox == nil && p.seen.DeletionTimestamp != nil:
		p.remove() // between its end and the word of it
	case p.failed != nil:
	case p.seen.DeletionTimestamp != nil:
		p.stop()
	case (first || p.sandbox == nil) && m.rejects.reason != "":
		p.fail(m.rejects)
	case first || p.sandbox == nil:
		p.begin()
	default:
		p.updateImages()
		p.resize()
	}
}

// secretsOf are the Secrets without which a volume cannot be mounted.
func secretsOf(v corev1.Volume) []string {
	var out []string
	if s := v.Secret; s != nil && (s.Optional == nil || !*s.Optional) {
		out = append(out, s.SecretName)
	}
	if v.Projected != nil {
		for _, source := range v.Projected.Sources {
			if source.Secret != nil {
				out = append(out, source.Secret.Name)
			}
		}
	}
	return out
}

// begin makes the sandbox and starts the sidecars. Volumes whose claims or Secrets are gone hold it
// up, as they do on a host.
func (p *pod) begin() {
	volumes := map[string]*Volume{}
	for _, v := range p.seen.Spec.Volumes {
		if slices.ContainsFunc(secretsOf(v), func(name string) bool { return !p.exists(&corev1.Secret{}, name) }) {
			p.line.After(2*time.Second, "mount "+p.seen.Name, p.sync)
			return
		}
		if v.EmptyDir != nil && v.EmptyDir.SizeLimit != nil {
			if p.own[v.Name] == nil {
				p.own[v.Name] = &Volume{Name: string(p.seen.UID) + "/" + v.Name, Host: p.host.Name,
					Size: v.EmptyDir.SizeLimit.Value()}
			}
			volumes[v.Name] = p.own[v.Name]
		}
		if v.PersistentVolumeClaim == nil {
			continue
		}
		claim := &corev1.PersistentVolumeClaim{}
		err := p.client.Get(context.Background(),
			client.ObjectKey{Namespace: p.seen.Namespace, Name: v.PersistentVolumeClaim.ClaimName}, claim)
		if err != nil || p.volumes[claim.Spec.VolumeName] == nil {
			p.line.After(2*time.Second, "mount "+p.seen.Name, p.sync)
			return
		}
		volumes[v.Name] = p.volumes[claim.Spec.VolumeName]
	}
	p.line.After(p.line.Between(100*time.Millisecond, time.Second), "sandbox "+p.seen.Name, func() {
		if p.sandbox != nil || p.gone || p.stopping || !p.host.up {
			return
		}
		p.address = p.newAddress()
		p.sandbox = p.runtime.Sandbox(p.seen, p.host.Name, p.address, volumes)
		p.containers, p.resources = nil, resourcesOf(p.seen)
		for _, c := range p.seen.Spec.InitContainers {
			p.containers = append(p.containers, &container{name: c.Name, image: c.Image, sidecar: true,
				waiting: "PodInitializing"})
		}
		for _, c := range p.seen.Spec.Containers {
			p.containers = append(p.containers, &container{name: c.Name, image: c.Image, waiting: "PodInitializing"})
		}
		p.advance()
		p.report()
	})
}

func (p *pod) exists(object client.Object, name string) bool {
	return p.client.Get(context.Background(), client.ObjectKey{Namespace: p.seen.Namespace, Name: name}, object) == nil
}

// advance starts what is to run next: sidecars one after the other, each when the one before has
// started, then the others.
func (p *pod) advance() {
	if p.sandbox == nil || p.stopping {
		return
	}
	for _, c := range p.containers {
		if !c.running && c.again == nil {
			p.start(c, p.line.Between(50*time.Millisecond, 500*time.Millisecond))
		}
		if c.sidecar && !c.started {
			return
		}
	}
}

func (p *pod) start(c *container, after time.Duration) {
	c.again = p.line.After(after, "start "+p.seen.Name+"/"+c.name, func() {
		c.again = nil
		if p.stopping || p.sandbox == nil || c.running {
			return
		}
		if why := p.unpullable(c.image); why != "" {
			c.waiting, c.message = "ImagePullBackOff",
				fmt.Sprintf("Back-off pulling image %q: ErrImagePull: %s", c.image, why)
			p.start(c, firstBackOff)
			p.report()
			return
		}
		c.running, c.begun, c.started, c.ready, c.waiting, c.message, c.startedAt = true, true, false, false, "", "",
			p.line.Now()
		c.starts++
		if p.pulled[c.image] == "" {
			p.pulled[c.image] = p.pull(c.image)
		}
		c.imageID = p.pulled[c.image]
		sandbox := p.sandbox
		sandbox.Start(c.name, c.image, func(code int) {
			if p.sandbox == sandbox {
				p.exited(c, code)
			}
		})
		p.probe()
		p.report()
	})
}

// unpullable says why an image cannot be pulled; empty if it can.
func (p *pod) unpullable(image string) string {
	tag, _, _ := strings.Cut(image, "@")
	if p.broken[tag] {
		return fmt.Sprintf("failed to resolve reference %q: not found", image)
	}
	secret, private := p.private[tag]
	named := slices.ContainsFunc(p.seen.Spec.ImagePullSecrets,
		func(r corev1.LocalObjectReference) bool { return r.Name == secret })
	if private && (!named || !p.exists(&corev1.Secret{}, secret)) {
		return fmt.Sprintf("failed to authorize %q: 401 Unauthorized", image)
	}
	return ""
}

// pull is how a runtime names what it has pulled: repository and digest. No host keeps an image for
// another pod.
func (p *pod) pull(image string) string {
	tag, digest, pinned := strings.Cut(image, "@")
	if !pinned {
		digest = fmt.Sprintf("sha256:%x", sha256.Sum256(fmt.Append(nil, tag, p.moved[tag])))
	}
	if colon := strings.LastIndex(tag, ":"); colon > strings.LastIndex(tag, "/") {
		tag = tag[:colon]
	}
	return tag + "@" + digest
}

func (p *pod) exited(c *container, code int) {
	ran := p.line.Now().Sub(c.startedAt)
	c.running, c.started, c.ready = false, false, false
	c.exit = &corev1.ContainerStateTerminated{ExitCode: int32(code), Reason: "Error",
		StartedAt: metav1.NewTime(c.startedAt), FinishedAt: p.now()} //nolint:gosec // 0-255
	if p.stopping {
		p.ended()
		return
	}
	p.updateImages()
	pause := time.Duration(0)
	if ran >= forgetAfter {
		c.restarts = 0
	}
	if c.restarts > 0 {
		pause = min(firstBackOff<<min(c.restarts-1, 10), longestBackOff)
		c.waiting, c.message = "CrashLoopBackOff",
			fmt.Sprintf("back-off %s restarting failed container=%s", pause, c.name)
	}
	c.restarts++
	p.start(c, pause+p.line.Between(200*time.Millisecond, time.Second))
	p.report()
}

// probe asks startup and readiness again. Kubelet asks at its period: what changes is seen up to
// one period later.
func (p *pod) probe() {
	if p.sandbox == nil || p.host == nil || !p.host.up {
		return
	}
	for _, c := range p.containers {
		if !c.running {
			continue
		}
		if !c.started && (!c.sidecar || p.sandbox.Started(c.name)) {
			c.started = true
			p.advance()
			p.report()
		}
		if now := p.sandbox.Ready(c.name); c.started && now != c.ready {
			sandbox := p.sandbox
			p.line.After(p.line.Between(0, readyPeriod), "probe "+p.seen.Name, func() {
				if p.sandbox == sandbox && c.running && c.ready != sandbox.Ready(c.name) {
					c.ready = !c.ready
					p.report()
				}
			})
		}
	}
}

// updateImages restarts containers that have another image than before, but for sidecars that an
// older kubelet keeps.
func (p *pod) updateImages() {
	for _, spec := range slices.Concat(p.known.Spec.InitContainers, p.known.Spec.Containers) {
		for _, c := range p.containers {
			kept := c.sidecar && c.running && p.host.kubelet == keepsSidecars
			if c.name == spec.Name && c.image != spec.Image && !kept {
				c.image, c.imageID = spec.Image, ""
				if c.running {
					p.sandbox.Kill(c.name)
				}
			}
		}
	}
}

// stop ends the pod in order: the containers get SIGTERM, the sidecars when those have ended, and
// after the grace period what is left is killed.
func (p *pod) stop() {
	grace := 30 * time.Second
	if s := p.seen.Spec.TerminationGracePeriodSeconds; s != nil {
		grace = time.Duration(*s) * time.Second
	}
	if s := p.seen.DeletionGracePeriodSeconds; s != nil && !p.gone {
		grace = time.Duration(*s) * time.Second
	}
	p.stopWithin(grace)
}

func (p *pod) stopWithin(grace time.Duration) {
	if p.stopping {
		return
	}
	p.stopping = true
	if p.sandbox == nil {
		p.remove()
		return
	}
	p.kill = p.line.After(grace, "kill "+p.seen.Name, p.killAll)
	for _, c := range p.containers {
		p.line.Cancel(c.again)
		c.again = nil
		if sandbox := p.sandbox; c.running && !c.sidecar && sandbox != nil {
			sandbox.Stop(c.name)
		}
	}
	p.report()
	p.ended()
}

func (p *pod) killAll() {
	for _, c := range p.containers {
		if c.running {
			p.sandbox.Kill(c.name)
		}
	}
}

// ended continues with a stop when a container has ended.
func (p *pod) ended() {
	if p.sandbox == nil {
		return // the last container has ended already
	}
	main, sidecars := 0, 0
	for _, c := range p.containers {
		switch {
		case c.running && c.sidecar:
			sidecars++
		case c.running:
			main++
		}
	}
	switch {
	case main > 0:
	case sidecars > 0:
		for _, c := range p.containers {
			if sandbox := p.sandbox; c.running && c.sidecar && sandbox != nil {
				sandbox.Stop(c.name)
			}
		}
	default:
		p.line.Cancel(p.kill)
		p.sandbox.Remove()
		p.sandbox = nil
		if p.failed != nil && p.seen.DeletionTimestamp == nil {
			p.report()
			return
		}
		p.line.After(p.soon(), "remove "+p.seen.Name, p.remove)
	}
}

// remove takes the pod out of the API server: kubelet is done with it.
func (p *pod) remove() {
	if p.gone {
		delete(p.pods, p.seen.UID)
	}
	if p.gone || p.host == nil || !p.host.up {
		return
	}
	if !p.host.linked {
		return // done when the link is back
	}
	zero := int64(0)
	err := p.client.Delete(context.Background(), p.object(), client.Preconditions{UID: &p.seen.UID},
		&client.DeleteOptions{GracePeriodSeconds: &zero})
	if client.IgnoreNotFound(err) != nil {
		panic(fmt.Sprintf("remove pod %s: %v", p.seen.Name, err))
	}
}

// newAddress is one that no pod had before, unless the pod of that name is to have another's, which
// that one has no more.
func (p *pod) newAddress() netip.Addr {
	if a, ok := p.handed[p.seen.Name]; ok {
		delete(p.handed, p.seen.Name)
		if !p.taken(a) {
			return a
		}
	}
	p.host.addresses++
	return netip.AddrFrom4([4]byte{10, byte(p.host.number), byte(p.host.addresses >> 8), byte(p.host.addresses)})
}

// taken says that a pod has an address that still runs.
func (k *Cluster) taken(a netip.Addr) bool {
	for _, p := range k.pods {
		if p.sandbox != nil && p.address == a {
			return true
		}
	}
	return false
}

// HandAddress gives the next pod of a name an address that another had, if it is free then.
func (k *Cluster) HandAddress(name string, a netip.Addr) { k.handed[name] = a }
