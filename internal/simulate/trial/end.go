package trial

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/simulate/world"
)

// End is what a run leaves behind, without what is by chance: uids, times, addresses.
type End struct {
	// Objects by kind and name.
	Objects map[string]string
	// Ring is the state of the JVMs by node.
	Ring map[string]string
	// Created, Deleted and JVMs count what happened on the way.
	Created, Deleted, JVMs map[string]int
}

// compared are the kinds of which the end is made.
var compared = []string{
	"CassandraCluster", "CassandraNode", "CassandraTask", "CassandraBackup", "CassandraRestore",
	"Pod", "PersistentVolumeClaim", "Service", "ConfigMap",
	"Secret",
	"ServiceAccount", "Role", "RoleBinding", "PodDisruptionBudget", "NetworkPolicy",
}

func endOf(r *run) End {
	e := EndOf(r.w)
	e.Created, e.Deleted, e.JVMs = r.checker.created, r.checker.deleted, r.checker.jvms
	return e
}

// EndOf is how a world stands, without what happened on the way.
func EndOf(w *world.World) End { return endIn(w, normal) }

// endIn is EndOf by the texts of single objects.
func endIn(w *world.World, text func(client.Object) string) End {
	e := End{Objects: map[string]string{}, Ring: map[string]string{}}
	sandboxes, unused := sandboxesOf(w), unusedCertificates(w)
	for _, kind := range compared {
		for _, o := range w.Server.Objects(kind) {
			if o.GetNamespace() != world.Namespace || kind == "Secret" && slices.Contains(unused, o.GetName()) {
				continue
			}
			name := kind + "/" + o.GetName()
			if n, ok := o.(*v1alpha1.CassandraNode); ok && !sandboxes[n.Name].answers {
				n = n.DeepCopy()
				n.Status = v1alpha1.CassandraNodeStatus{} // the last words of an agent that is gone
				e.Objects[name] = normal(n)
				continue
			}
			e.Objects[name] = text(o)
		}
	}
	for name, s := range sandboxes {
		e.Ring[name] = s.jvm
	}
	return e
}

// unusedCertificates are those of nodes that do not encrypt any more: they go with their records,
// and are not recreated.
func unusedCertificates(w *world.World) (out []string) {
	for _, o := range w.Server.Objects("CassandraNode") {
		for _, use := range []v1alpha1.CertificateUse{v1alpha1.UseInternode, v1alpha1.UseClients} {
			if !slices.Contains(o.(*v1alpha1.CassandraNode).Spec.Pod.Certificates, use) {
				out = append(out, v1alpha1.CertificateName(o.GetName(), use))
			}
		}
	}
	return out
}

// sandbox is what of a running pod counts for how a world stands.
type sandbox struct {
	answers bool
	jvm     string
}

func sandboxesOf(w *world.World) map[string]sandbox {
	out := map[string]sandbox{}
	for _, s := range w.Pods.Sandboxes() {
		state := sandbox{answers: s.Agent() != nil, jvm: "no JVM"}
		if j := s.JVM(); j != nil {
			state.jvm = fmt.Sprintf("%s, clients %v", j.Mode(), j.NativeOpen())
		}
		out[s.Name()] = state
	}
	return out
}

// chance are fields that no two runs have in common, or whose difference is said elsewhere.
var chance = map[string]bool{
	"serialNumber": true, "ca.crt": true, "authority": true, "trusted": true, "fingerprint": true,
	"resourceVersion": true, "generation": true, "observedGeneration": true, "managedFields": true,
	"creationTimestamp": true, "selfLink": true,
	"lastTransitionTime": true, "since": true, "startedAt": true, "finishedAt": true, "restarts": true,
	"attempts": true, "tokens": true,
	"addresses": true, "history": true, "jvmRestarts": true,
	"nodeName": true, "host": true, "address": true, "clusterIP": true, "clusterIPs": true, "volumeName": true,
	"load": true,
	// Which container of an agent was replaced; a pod that was made later has none.
	v1alpha1.AnnotationReplacedAgent: true,
	// Whether a pod was resized or made so.
	v1alpha1.AnnotationResize: true, "resized": true,
	// A resourceVersion.
	v1alpha1.AnnotationSecretVersion: true, "secretVersion": true,
}

var (
	uuids     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	times     = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z`)
	addresses = regexp.MustCompile(`\b10\.[0-9]+\.[0-9]+\.[0-9]+\b`)
	steps     = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9]+\b`)
	// A pod that is recreated has the very image of its tag.
	pinned   = regexp.MustCompile(`"image":"([^"@]+)@sha256:[0-9a-f]{64}"`)
	contents = regexp.MustCompile(`"helenus.io/content":"[0-9a-f]{16}"`)
	// An operation that was interrupted is tried again by another id, and finds less to do.
	attempts = regexp.MustCompile(`(<step>/keyspaces|<uid>/run)(-[0-9]+)?`)
	// A tag has the beginning of a uid.
	tags    = regexp.MustCompile(`(snapshot [a-z0-9-]+-)[0-9a-f]{8}\b`)
	altered = regexp.MustCompile(`altered [a-z_, ]+|nothing had to be altered`)
)

func normal(o client.Object) string {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		panic(fmt.Sprintf("normalise %T: %v", o, err)) // they all have an encoding
	}
	switch o := o.(type) {
	case *corev1.Secret:
		content["data"] = slices.Sorted(maps.Keys(o.Data))
	case *corev1.ConfigMap:
		if o.Name == v1alpha1.LedgerName(clusterName) {
			delete(content, "data") // it is held to the world: see spec.go
		}
	case *corev1.Pod, *corev1.PersistentVolumeClaim:
		delete(content, "status")
		if to := o.GetAnnotations()[v1alpha1.AnnotationResize]; to != "" {
			content["metadata"].(map[string]any)["annotations"].(map[string]any)[v1alpha1.AnnotationTemplateHash] = to
		}
	case *v1alpha1.CassandraCluster:
		// A fault that sets a clock leaves it so, which is said. Where all are true the checker
		// refuses the word itself.
		told := o.DeepCopy()
		told.Status.Notices = slices.DeleteFunc(told.Status.Notices,
			func(n v1alpha1.Notice) bool { return n.Reason == v1alpha1.NoticeClocksDiffer })
		// When tables are repaired depends on when agents told of them, and of their replication.
		told.Status.Repair = nil
		if len(told.Status.Notices) < len(o.Status.Notices) || (told.Status.Repair == nil) != (o.Status.Repair == nil) {
			return normal(told)
		}
	case *v1alpha1.CassandraBackup:
		content["status"] = map[string]any{"phase": string(o.Status.Phase)} // which rows it has is by chance
	case *v1alpha1.CassandraRestore:
		content["status"] = map[string]any{"phase": string(o.Status.Phase)} // which node did what is by chance
	case *v1alpha1.CassandraNode:
		if spec, ok := content["spec"].(map[string]any); ok && o.Spec.Join != nil && o.Spec.Join.Withdraw != nil {
			delete(spec, "join") // a ticket that was taken back is as good as none
		}
		if o.Spec.Member == nil {
			// A record that is made once others have proven their image has its digest.
			delete(content["spec"].(map[string]any)["pod"].(map[string]any), "imageDigest")
		}
		if status, ok := content["status"].(map[string]any); ok {
			// An operation that failed may be carried out by another node; what it did is in the
			// ring. One that nobody knows the end of is another matter, as long as the operator
			// still wants it.
			var unknown []any
			for i, op := range o.Status.Operations {
				if op.Phase == v1alpha1.OperationInterrupted && o.Spec.Operation(op.ID) != nil {
					unknown = append(unknown, status["operations"].([]any)[i])
				}
			}
			if delete(status, "operations"); unknown != nil {
				status["operations"] = unknown
			}
			if status["disk"] == string(v1alpha1.DiskEmpty) {
				delete(status, "hostID") // a status that was lost does not remember which member's disk it was
			}
		}
	}
	text, err := json.Marshal(without(content))
	if err != nil {
		panic(fmt.Sprintf("normalise %T: %v", o, err))
	}
	out := uuids.ReplaceAllString(string(text), "<uid>")
	if n, ok := o.(*v1alpha1.CassandraNode); ok && n.Spec.Configuration.RestartedAt != nil {
		// The time is in the hash of the configuration, too.
		if hash, err := config.Hash(&n.Spec.Configuration); err == nil {
			out = strings.ReplaceAll(out, hash, "<configuration>")
		}
	}
	out = times.ReplaceAllString(out, "<time>")
	out = addresses.ReplaceAllString(out, "<ip>")
	out = contents.ReplaceAllString(out, `"helenus.io/content":"<hash>"`)
	out = steps.ReplaceAllString(out, "<step>")
	out = tags.ReplaceAllString(out, "$1<uid>")
	out = attempts.ReplaceAllString(out, "$1")
	out = altered.ReplaceAllString(out, "<altered>")
	return pinned.ReplaceAllString(out, `"image":"$1"`)
}

func without(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, inner := range v {
			if !chance[key] {
				out[key] = without(inner)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = without(inner)
		}
		return out
	default:
		return value
	}
}

// compare holds the end against that of the run without the fault.
func (r *run) compare(undisturbed *End) {
	if len(r.result.Violations) > 0 {
		return
	}
	end, expected := r.result.End, *undisturbed
	stays := kindOf(r.Fault).stays
	if stays == nil && r.Scenario.Renews {
		stays = renewal
	}
	if stays != nil {
		end.Objects, expected.Objects = leavingOut(stays, end.Objects), leavingOut(stays, expected.Objects)
	}
	// Whether anything of repairs is known yet depends on when agents have told of tables.
	unlike := []string{"ConfigMap/" + v1alpha1.RepairsName(clusterName)}
	if of := kindOf(r.Fault).unlike; of != nil {
		unlike = append(unlike, of(r)...)
	}
	end.Objects, expected.Objects = maps.Clone(end.Objects), maps.Clone(expected.Objects)
	for _, name := range unlike {
		delete(end.Objects, name)
		delete(expected.Objects, name)
	}
	if r.may().claims {
		end.Objects = maps.Clone(end.Objects)
		maps.DeleteFunc(end.Objects, func(name, _ string) bool {
			return strings.HasPrefix(name, "PersistentVolumeClaim/") && expected.Objects[name] == ""
		})
	}
	for _, text := range Unlike(end, expected) {
		r.violated("%s", text)
	}
	r.compareCounts(&expected)
}

func leavingOut(part *regexp.Regexp, objects map[string]string) map[string]string {
	out := make(map[string]string, len(objects))
	for name, text := range objects {
		out[name] = part.ReplaceAllString(text, "")
	}
	return out
}

// Unlike says in what an end differs from the expected one, the counts of what happened on the way
// aside.
func Unlike(e, expected End) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(expected.Objects)) {
		got, here := e.Objects[name]
		switch {
		case !here:
			out = append(out, "the end lacks "+name)
		case got != expected.Objects[name]:
			out = append(out, fmt.Sprintf("%s ends differently: %s", name, difference(expected.Objects[name], got)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Objects)) {
		if _, wanted := expected.Objects[name]; !wanted {
			out = append(out, fmt.Sprintf("the end has %s, which the run without the fault has not", name))
		}
	}
	if !maps.Equal(e.Ring, expected.Ring) {
		out = append(out, fmt.Sprintf("the ring ends as %v, not as %v", e.Ring, expected.Ring))
	}
	return out
}

// may is what the fault allows.
func (r *run) may() allowance {
	if r.Fault == nil {
		return allowance{}
	}
	may := kindOf(r.Fault).may
	if r.Scenario.Grows && may.jvmStarts+may.each > 0 {
		may.jvmStarts += max(1, may.joins) // a join that streamed from who is away begins anew
	}
	may.jvmStarts += r.Scenario.InVain
	if r.Fault.Kind == "forbidden" && r.Fault.At.Does == "patch/resize" {
		may.pods, may.why = 1, "where resizing is forbidden a node gets another pod"
	}
	return may
}

// compareCounts allows what the fault explains, and nothing else. What was deleted need not be
// counted: it is what was made and is not there at the end.
func (r *run) compareCounts(expected *End) {
	may := r.may()
	starts := 0
	for name, n := range r.result.End.JVMs {
		starts += max(0, n-expected.JVMs[name]) // one that starts less makes up for none
	}
	if most := may.jvmStarts + may.each*len(expected.JVMs); starts > most {
		r.violated("%d JVMs started more than without the fault; %d may%s: %v, not %v", starts, most,
			may.because(), r.result.End.JVMs, expected.JVMs)
	}
	pods := 0
	for _, name := range slices.Sorted(maps.Keys(r.result.End.Created)) {
		more := r.result.End.Created[name] - expected.Created[name]
		switch {
		case strings.HasPrefix(name, "Node/"): // a host that a fault brings back registers itself
		case name == "ConfigMap/"+v1alpha1.RepairsName(clusterName): // see compare
		case strings.HasPrefix(name, "Pod/"):
			pods += max(0, more)
		case more > 0 && !may.objects:
			r.violated("%s was created %d times more than without the fault", name, more)
		}
	}
	if pods > may.pods && may.pods >= 0 && !r.Scenario.Tries {
		r.violated("%d pods were made more than without the fault; %d may%s", pods, may.pods, may.because())
	}
}

// difference is the first place in which two texts differ.
func difference(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	const before, after = 60, 160
	cut := func(s string) string { return s[max(0, i-before):min(len(s), i+after)] }
	return fmt.Sprintf("…%s… not …%s…", cut(b), cut(a))
}
