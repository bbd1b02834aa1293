package cluster

import (
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

func TestMetadataThatSomebodyEditedIsPutBack(t *testing.T) {
	relabelled := func(labels map[string]string, key, value string) {
		if value == "" {
			delete(labels, key)
			return
		}
		labels[key] = value
	}
	var certificate *corev1.Secret
	var edited map[string]bool
	for name, c := range map[string]struct {
		edit func(n *facts.Node)
		of   string
		want string
	}{
		"a label of a record": {func(n *facts.Node) {
			relabelled(n.Record.Labels, v1alpha1.LabelRack, "")
		}, second, "Apply CassandraNode"},
		"all labels of a record": {func(n *facts.Node) { n.Record.Labels = nil }, second, "Apply CassandraNode"},
		"the owner of a record": {func(n *facts.Node) {
			n.Record.OwnerReferences = nil
		}, second, "Apply CassandraNode"},
		"the finalizer of a record": {func(n *facts.Node) { n.Record.Finalizers = nil }, second, "Apply CassandraNode"},
		"another label of a record": {func(n *facts.Node) { relabelled(n.Record.Labels, "team", "shop") }, second, ""},
		"a label of a pod": {func(n *facts.Node) {
			relabelled(n.Pod.Labels, v1alpha1.LabelDatacenter, "x")
		}, second, "Change Pod"},
		"all labels of a pod":    {func(n *facts.Node) { n.Pod.Labels = nil }, second, "Change Pod"},
		"another label of a pod": {func(n *facts.Node) { relabelled(n.Pod.Labels, "team", "shop") }, second, ""},
		"the note of what was added to a pod": {func(n *facts.Node) {
			n.Pod.Annotations[v1alpha1.AnnotationAdded] = `{"labels":["x"]}`
		}, second, "Change Pod"},
		"a label of a claim": {func(n *facts.Node) {
			relabelled(n.Claims["data"].Claim.Labels, v1alpha1.LabelNode, "")
		}, "data-" + second, "Change PersistentVolumeClaim"},
		"whose claim it is": {func(n *facts.Node) {
			relabelled(n.Claims["data"].Claim.Labels, v1alpha1.LabelClusterUID, "")
		}, "data-" + second, "Change PersistentVolumeClaim"},
		"another label of a claim": {func(n *facts.Node) {
			relabelled(n.Claims["data"].Claim.Labels, "team", "shop")
		}, "data-" + second, ""},
		"a label of a certificate": {func(n *facts.Node) {
			relabelled(certificate.Labels, v1alpha1.LabelNode, "")
		}, second + "-agent-tls", "IssueCertificate Secret"},
		"the owner of a certificate": {func(n *facts.Node) {
			certificate.OwnerReferences = nil
		}, second + "-agent-tls", "IssueCertificate Secret"},
		"what is in a certificate": {func(n *facts.Node) {
			edited[certificate.Name] = true
		}, second + "-agent-tls", "IssueCertificate Secret"},
		"of a record that is deleted": {func(n *facts.Node) {
			deleting(n)
			n.Record.Labels = nil
			n.Record.Finalizers = nil
		}, second, "SetOwners Pod"},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			w.settle()
			certificate, edited = w.snapshot.Shared.Secrets[second+"-agent-tls"], map[string]bool{}
			w.snapshot.Edited = edited
			c.edit(w.snapshot.Nodes[second])
			made := next(w)
			if c.want == "" {
				wantWrites(t, made, c.of)
				return
			}
			wantWrites(t, made, c.of, c.want)
		})
	}
}

// What others put on a pod stays, and the hash of what it was made of, whatever the note of what
// the spec had added says.
func TestWhatOthersPutOnAPodStays(t *testing.T) {
	w := formed(t)
	w.settle()
	pod := w.snapshot.Nodes[second].Pod
	pod.Labels["team"], pod.Annotations["note"] = "shop", "x"
	pod.Annotations[v1alpha1.AnnotationAdded] = fmt.Sprintf(`{"labels":[%q,"gone"],"annotations":[%q]}`,
		v1alpha1.LabelClusterUID, v1alpha1.AnnotationTemplateHash)
	made := next(w)
	if len(made.Writes) != 1 || made.Writes[0].Verb != plan.Change {
		t.Fatalf("want one change:\n%s", made)
	}
	delete(pod.Annotations, v1alpha1.AnnotationAdded)
	changed := made.Writes[0].Object
	if !maps.Equal(changed.GetLabels(), pod.Labels) || !maps.Equal(changed.GetAnnotations(), pod.Annotations) {
		t.Errorf("got %v %v, want %v %v", changed.GetLabels(), changed.GetAnnotations(), pod.Labels, pod.Annotations)
	}
}

// While a cluster is adopted its claims are still the other's, whatever else their labels have
// lost.
func TestAClaimThatIsBeingAdoptedKeepsItsOwner(t *testing.T) {
	w := formed(t)
	w.settle()
	claim := w.snapshot.Nodes[second].Claims["data"].Claim
	claim.Labels = map[string]string{v1alpha1.LabelClusterUID: "old"}
	w.snapshot.Ledger.Step = &ledger.Step{Kind: ledger.AdoptRing, Stage: ledger.StageOpen}
	for _, write := range next(w).Writes {
		if write.UID == claim.UID && (write.Object.GetLabels()[v1alpha1.LabelClusterUID] != "old" ||
			write.Object.GetLabels()[v1alpha1.LabelNode] != second) {
			t.Errorf("labels %v", write.Object.GetLabels())
		}
	}
	w.snapshot.Ledger.Step = nil
	found := false
	for _, write := range next(w).Writes {
		if found = found || write.UID == claim.UID &&
			write.Object.GetLabels()[v1alpha1.LabelClusterUID] == string(w.snapshot.Cluster.UID); found {
			return
		}
	}
	t.Error("the claim is never this cluster's")
}

func TestTheLedgerGetsItsLabelsBack(t *testing.T) {
	w := formed(t)
	w.settle()
	w.snapshot.Shared.ConfigMaps["orders-ledger"] = &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "orders-ledger"},
	}
	made := next(w)
	if len(made.Writes) != 1 || made.Writes[0].Verb != plan.PutLedger ||
		made.Writes[0].Ledger.Steps != w.snapshot.Ledger.Steps {
		t.Errorf("want the same ledger to be written:\n%s", made)
	}
}

// What has no owner stays behind when the cluster goes.
func TestADeletedClusterTakesWithItWhatHasLostItsOwner(t *testing.T) {
	w := formed(t)
	w.settle()
	now := metav1.NewTime(w.now)
	w.snapshot.Cluster.DeletionTimestamp = &now
	s := w.snapshot.Shared
	objects := []plan.Object{
		s.Services["orders"], s.Budgets["orders-dc1"], s.ServiceAccounts["orders-helenus-agent"],
		s.Roles["orders-helenus-agent"], s.RoleBindings["orders-helenus-agent"],
		s.ConfigMaps["orders-seeds"],
	}
	uids := map[types.UID]bool{}
	for _, o := range objects {
		o.SetOwnerReferences(nil)
		uids[o.GetUID()] = true
	}
	for range 10 {
		for _, write := range w.pass().Writes {
			if write.Verb == plan.Delete {
				delete(uids, write.UID)
			}
		}
	}
	if len(uids) > 0 {
		t.Errorf("%d objects were left out: %v", len(uids), uids)
	}
}
