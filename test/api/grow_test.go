package api

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/internal/act"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// TestClaimsGrow: the operator, with its own rights, has a bound claim ask for more, if its class
// lets volumes grow. The API server refuses it otherwise, which is not in the way of other writes.
func TestClaimsGrow(t *testing.T) {
	admin, err := ctrlclient.New(server, ctrlclient.Options{})
	must(t, err)
	operator, err := ctrlclient.New(withToken(tokenOf(t, "helenus-system", "helenus", nil)), ctrlclient.Options{})
	must(t, err)
	cluster := sample(t, "../../config/samples/demo.yaml", namespace(t))
	owner := render.OwnerOf(cluster)
	wanted := render.WantedNodes(cluster, facts.Install{ImageRepository: "cassandra"})[0]
	for class, grows := range map[string]bool{"grows": true, "stays": false} {
		t.Run(class, func(t *testing.T) {
			must(t, admin.Create(t.Context(), &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class},
				Provisioner: "example.com/disk", AllowVolumeExpansion: &grows}))
			var seen storagev1.StorageClass
			must(t, operator.Get(t.Context(), ctrlclient.ObjectKey{Name: class}, &seen))

			volume := render.Volumes(wanted.Pod)[0]
			volume.Name, volume.Claim.StorageClassName = class, &class
			claim := render.Claim(owner, render.Record(owner, wanted, nil, ""), volume)
			must(t, operator.Create(t.Context(), claim))
			must(t, admin.Create(t.Context(), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: class},
				Spec: corev1.PersistentVolumeSpec{Capacity: claim.Spec.Resources.Requests,
					AccessModes: claim.Spec.AccessModes, StorageClassName: class,
					ClaimRef: &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
					PersistentVolumeSource: corev1.PersistentVolumeSource{
						HostPath: &corev1.HostPathVolumeSource{Path: "/nothing"}}}}))
			must(t, eventually(t.Context(), claim.Name+" is bound", func(ctx context.Context) (bool, error) {
				err := admin.Get(ctx, ctrlclient.ObjectKeyFromObject(claim), claim)
				return claim.Status.Phase == corev1.ClaimBound, err
			}))

			larger := claim.DeepCopy()
			larger.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("4Gi")
			done := (&act.Writer{Client: operator}).Do(t.Context(), &facts.Snapshot{Cluster: cluster}, plan.Plan{
				Writes: []plan.Write{{Verb: plan.Change, Object: larger, Seen: claim, UID: claim.UID}},
			}, nil, &consistency.Store{})
			if done.Err != nil || done.Done != 1 || (done.Rejected == nil) != grows ||
				!grows && !apierrors.IsForbidden(done.Rejected) {
				t.Fatalf("%+v", done)
			}
			must(t, admin.Get(t.Context(), ctrlclient.ObjectKeyFromObject(claim), claim))
			if size := claim.Spec.Resources.Requests.Storage().String(); (size == "4Gi") != grows {
				t.Errorf("the claim asks for %s", size)
			}
		})
	}
}
