package upkeep

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/words"
)

// replacesSidecars is the first release of kubelet that restarts a sidecar whose image has changed
// (kubernetes/kubernetes#126525). Older ones keep one that runs, and start one that has ended with
// the image that the pod has then, without a back-off: that is counted by the container's hash
// (kuberuntime computeInitContainerActions, SyncPod step 6 and getStableKey, read in 1.31.14).
var replacesSidecars = version.MustParseSemantic("1.32.0")

// Agents brings the agents of the pods to the image of this release: one alone until one answers,
// then those of a rack together, each rack when the one before answers. Kubelet restarts the one
// container; Cassandra runs on, and so does what the agent has begun in it.
func (k *Keeper) Agents() plan.Result {
	var outdated, waiting, fixed []*facts.Node
	proven := false
	for _, n := range k.Records() {
		if k.Live(n.Name) == nil || n.Pod == nil || n.Pod.DeletionTimestamp != nil {
			continue
		}
		switch image := render.ImageOf(n.Pod, layout.AgentContainer); {
		case image == "" || k.draft.Has(n.Pod):
		case image == k.Install.AgentImage && k.agentStarts(n):
			waiting = append(waiting, n)
			k.askToEnd(n)
		case image == k.Install.AgentImage:
			proven = proven || n.CurrentAgent() != nil
			if n.Record.Spec.AgentStartedAfter != nil {
				k.update(n, false, "its agent has ended",
					func(s *v1alpha1.CassandraNodeSpec) { s.AgentStartedAfter = nil })
			}
		case askedFor(n).image == k.Install.AgentImage:
			fixed = append(fixed, n)
		case k.agentStarts(n): // with an image that is no longer the one
			outdated = slices.Insert(outdated, 0, n)
		default:
			outdated = append(outdated, n)
		}
	}
	if len(fixed) > 0 {
		k.draft.Notice(v1alpha1.NoticeAgentOutdated, names(fixed), "the agents of %s are of another release and stay "+
			"so: somebody has taken the image %s back. They work; a new pod has the agent of this release",
			words.List(names(fixed), 3), k.Install.AgentImage)
	}
	switch {
	case len(outdated) == 0:
		return plan.Nothing()
	case len(waiting) > 0:
		return plan.Waiting("the new agent of %s is to answer; %s of another release",
			words.List(names(waiting), 3), words.Plural(len(outdated), "agent"))
	case k.Cluster.Spec.Paused:
		return plan.Waiting("spec.paused is true; %s of another release", words.Plural(len(outdated), "agent"))
	}
	if s := k.Ledger.Step; s != nil && s.Kind == ledger.RollOut {
		return plan.Waiting("the roll-out is open; %s of another release", words.Plural(len(outdated), "agent"))
	}
	first := outdated[0].Record.Spec
	wave := slices.DeleteFunc(slices.Clone(outdated), func(n *facts.Node) bool {
		return n.Record.Spec.Datacenter != first.Datacenter || n.Record.Spec.Rack != first.Rack
	})
	otherRack := slices.ContainsFunc(k.Records(), func(n *facts.Node) bool {
		return n.Record.Spec.Datacenter == first.Datacenter && n.Record.Spec.Rack != first.Rack
	})
	if !proven || !otherRack { // the pods of a wave are not ready for as long
		wave = wave[:1]
	}
	for _, n := range wave {
		k.replaceAgent(n)
	}
	k.draft.Event(corev1.EventTypeNormal, "ReplacingAgents", "the agents of %s get the image %s; Cassandra runs on",
		words.List(names(wave), 3), k.Install.AgentImage)
	return plan.Acting("replacing the agents of %s", words.List(names(wave), 3))
}

// replaceAgent asks for the agent of this release in a pod that runs.
func (k *Keeper) replaceAgent(n *facts.Node) {
	now := n.Pod.DeepCopy()
	for i := range now.Spec.InitContainers {
		if c := &now.Spec.InitContainers[i]; c.Name == layout.AgentContainer {
			c.Image = k.Install.AgentImage
		}
	}
	if now.Annotations == nil {
		now.Annotations = map[string]string{}
	}
	now.Annotations[v1alpha1.AnnotationReplacedAgent] = k.Install.AgentImage + " " + agentStatus(n).ContainerID
	k.draft.Write(plan.Write{Verb: plan.Change, Live: true, Object: now, Seen: n.Pod, UID: n.Pod.UID,
		Why: "its agent is of another release"})
}

// askAgain is how long an agent that was asked to end may take.
const askAgain = time.Minute

// askToEnd asks the agent that an older kubelet keeps to end. The pod has the new image. The time
// is what the agent itself told last, so that no two clocks are compared.
func (k *Keeper) askToEnd(n *facts.Node) {
	agent, asked := n.CurrentAgent(), n.Record.Spec.AgentStartedAfter
	if agent == nil || !k.keepsSidecars(n) || agentStatus(n).ContainerID != askedFor(n).instead {
		return
	}
	k.draft.WakeIn(askAgain)
	if asked == nil || agent.ObservedAt.Sub(asked.Time) >= askAgain {
		k.update(n, false, "its agent is to be started with the new image", func(spec *v1alpha1.CassandraNodeSpec) {
			spec.AgentStartedAfter = &metav1.Time{Time: agent.ObservedAt}
		})
	}
}

// agentStarts says that the agent of a node was replaced and does not answer yet, on a host that is
// there.
func (k *Keeper) agentStarts(n *facts.Node) bool {
	asked := askedFor(n)
	return asked.image != "" && k.hostReady(n) &&
		(agentStatus(n).ContainerID == asked.instead || n.CurrentAgent() == nil)
}

// asked is what AnnotationReplacedAgent says: which image, instead of which container.
type asked struct{ image, instead string }

func askedFor(n *facts.Node) asked {
	image, instead, _ := strings.Cut(n.Pod.Annotations[v1alpha1.AnnotationReplacedAgent], " ")
	return asked{image, instead}
}

func (k *Keeper) hostReady(n *facts.Node) bool {
	host := k.Hosts[n.Pod.Spec.NodeName]
	if host == nil {
		return false
	}
	ready := facts.HostReady(host)
	return ready != nil && ready.Status == corev1.ConditionTrue
}

// keepsSidecars says that the kubelet of a node's host does not replace its agent.
func (k *Keeper) keepsSidecars(n *facts.Node) bool {
	host := k.Hosts[n.Pod.Spec.NodeName]
	if host == nil {
		return false
	}
	kubelet, err := version.ParseSemantic(host.Status.NodeInfo.KubeletVersion)
	return err == nil && kubelet.LessThan(replacesSidecars)
}

func agentStatus(n *facts.Node) corev1.ContainerStatus {
	for _, status := range n.Pod.Status.InitContainerStatuses {
		if status.Name == layout.AgentContainer {
			return status
		}
	}
	return corev1.ContainerStatus{}
}

func names(nodes []*facts.Node) []string {
	out := make([]string, len(nodes))
	for i, n := range nodes {
		out[i] = n.Name
	}
	return out
}
