package rollout

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/render"
)

// resizesPods is the first release of kubelet that resizes pods without being told to, sidecars
// among them. No kubelet is newer than the API server.
var resizesPods = version.MustParseSemantic("1.33.0")

// mayResize says that the pod of a node can be brought in place to what it is to be, of which
// nothing but resources differs. Its agent has to be of this release: an older one sizes the heap
// by what its pod was made with. What a host has for all pods is compared, as for new pods; how
// much others leave of it only the kubelet knows, which puts the resize off.
func (p *pass) mayResize(n *facts.Node, w render.Wanted) bool {
	if n.Pod == nil || n.Pod.DeletionTimestamp != nil || n.Record.Spec.State != v1alpha1.StateRunning ||
		n.PodTemplate() != p.HashesOf(n).PodTemplate ||
		render.ImageOf(n.Pod, layout.AgentContainer) != p.Install.AgentImage {
		return false
	}
	if agent := n.CurrentAgent(); agent == nil && p.Of(n.Name).Failing() ||
		agent != nil && agent.Version != p.Install.Version {
		return false
	}
	host := p.Hosts[n.Pod.Spec.NodeName]
	if host == nil {
		return false
	}
	kubelet, err := version.ParseSemantic(host.Status.NodeInfo.KubeletVersion)
	if err != nil || kubelet.LessThan(resizesPods) {
		return false
	}
	asked, refused := render.ResizeAsked(n.Pod)
	if asked == p.WantedHashes(w).PodTemplate && (refused || infeasible(n.Pod)) || restartsContainers(n.Pod) {
		return false
	}
	pod := p.rendered(w)
	return pod != nil && len(guard.Lacking(pod, host)) == 0
}

// infeasible says that the host of a pod can never give what the pod asks for.
func infeasible(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodResizePending && c.Status == corev1.ConditionTrue {
			return c.Reason == corev1.PodReasonInfeasible
		}
	}
	return false
}

// restartsContainers says that a resize would end what runs: an overlay can say so.
func restartsContainers(pod *corev1.Pod) bool {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, c := range list {
			for _, policy := range c.ResizePolicy {
				if policy.RestartPolicy != corev1.NotRequired {
					return true
				}
			}
		}
	}
	return false
}

// restartFollows says that the JVM of a node that is resized has to be restarted after that: heap
// and direct memory follow from the memory limit.
func restartFollows(n *facts.Node, w render.Wanted) bool {
	of := func(c *v1alpha1.NodeConfiguration, pod v1alpha1.PodSettings) (config.Memory, error) {
		limit := int64(0)
		if pod.Resources != nil {
			limit = pod.Resources.Limits.Memory().Value()
		}
		return config.MemoryOf(c.JVM, limit)
	}
	have, err := of(&n.Record.Spec.Configuration, n.Record.Spec.Pod)
	want, wantErr := of(&w.Configuration, w.Pod)
	changes, diffErr := config.Diff(&n.Record.Spec.Configuration, &w.Configuration)
	return err != nil || wantErr != nil || diffErr != nil || have != want || len(changes.Restart) > 0 || behind(n)
}

// resizeNode brings the pod of a node of the wave to what it is to be while the node serves, and
// says what that waits for. The record takes over when the containers have what it says, so that no
// JVM starts with more memory than there is; in the same write it asks for the restart. Where the
// host has no room at present, the node waits: it serves, and a new pod might find no room either.
func (p *pass) resizeNode(n *facts.Node, w render.Wanted, mayGoDown bool) string {
	mayGoDown = mayGoDown || p.Of(n.Name).Process == assess.Absent
	if !render.HasResources(n.Pod, w.Pod) {
		if !mayGoDown {
			return "its pod is yet to be resized"
		}
		p.step.ResizePod(n, w.Pod, !p.written, "its pod is to have other resources")
		return "its pod is being resized"
	}
	if why, held := render.NotResized(n.Pod, w.Pod); why != "" {
		if held {
			p.step.Block(v1alpha1.BlockedPodNotResized, []string{n.Name}, "host %s does not resize the pod of node %s "+
				"(%s). The node serves as before, and waits until the host has room, or until less is asked for; to "+
				"have it placed elsewhere, delete the pod", n.Pod.Spec.NodeName, n.Name, why)
		}
		return "its pod is not resized: " + why
	}
	restart := restartFollows(n, w)
	if restart && !mayGoDown {
		return "it is yet to restart"
	}
	until := metav1.NewTime(p.Now.Add(intentLife))
	p.step.UpdateRecord(n.Name, false, "its pod was resized", func(spec *v1alpha1.CassandraNodeSpec) {
		p.closeUntilRoles(spec, w)
		spec.Configuration, spec.Pod, spec.Resized = w.Configuration, w.Pod, render.ResizedTo(n.Pod, w.Pod)
		if restart {
			spec.Resized.Restart = p.restartID(n.Name)
			spec.Restart = &v1alpha1.RestartIntent{Intent: v1alpha1.Intent{ID: p.restartID(n.Name), NotAfter: &until}}
		}
	})
	return "it takes over what its pod was resized to"
}

// owesRestart says that the JVM of a node whose pod was resized has not been restarted since.
func owesRestart(n *facts.Node) bool {
	return n.Pod != nil && n.Record.Spec.Resized.Owes(n.Pod.UID)
}

// hasPaid says that the restart which a node owed is over.
func hasPaid(n *facts.Node) bool {
	r := n.Record.Status.Restart
	return owesRestart(n) && r != nil && r.FinishedAt != nil && r.ID == n.Record.Spec.Resized.Restart
}

// resizeWantsDown says that the ring is to be asked now before a node is resized any further.
func (p *pass) resizeWantsDown(n *facts.Node, w render.Wanted) bool {
	if !render.HasResources(n.Pod, w.Pod) {
		return true
	}
	why, _ := render.NotResized(n.Pod, w.Pod)
	return why == "" && restartFollows(n, w)
}
