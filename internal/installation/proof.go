package installation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/words"
)

// What the operator says of its own installation: a ConfigMap in its namespace, the key of it that
// has a condition in JSON, and the type of that.
const (
	StatusName = "helenus"
	StatusKey  = "condition"
	Proven     = "InstallationProven"
)

// Condition is what a proof comes to, or that it could not be made.
func (p Proof) Condition(now time.Time, err error) metav1.Condition {
	out := metav1.Condition{Type: Proven, Status: metav1.ConditionTrue, Reason: "Proven",
		LastTransitionTime: metav1.NewTime(now),
		Message:            fmt.Sprintf("it has all %d rights, and the policies bite", p.Rights.Asked)}
	reason, problem := p.Problem()
	switch {
	case err != nil:
		out.Status, out.Reason, out.Message = metav1.ConditionUnknown, "NotTried", err.Error()
	case problem != nil:
		out.Status, out.Reason, out.Message = metav1.ConditionFalse, reason, problem.Error()
	}
	return out
}

// WriteStatus writes a condition into the ConfigMap of the installation.
func WriteStatus(ctx context.Context, c client.Client, namespace string, condition metav1.Condition) error {
	text, err := json.Marshal(condition)
	if err != nil {
		return fmt.Errorf("encode condition: %w", err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{StatusKey: string(text)}}}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	object.SetNamespace(namespace)
	object.SetName(StatusName)
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object),
		client.FieldOwner(v1alpha1.FieldManagerOperator), client.ForceOwnership); err != nil {
		return fmt.Errorf("write the status of the installation: %w", err)
	}
	return nil
}

// ReadStatus reads that condition.
func ReadStatus(ctx context.Context, c client.Reader, namespace string) (*metav1.Condition, error) {
	object, out := &corev1.ConfigMap{}, &metav1.Condition{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: StatusName}, object); err != nil {
		return nil, fmt.Errorf("get the status of the installation: %w", err)
	}
	if err := json.Unmarshal([]byte(object.Data[StatusKey]), out); err != nil {
		return nil, fmt.Errorf("read the status of the installation: %w", err)
	}
	return out, nil
}

// mostNames is how many names are said.
const mostNames = 5

// Proof is what an operator has found out about its own installation.
type Proof struct {
	Rights   Rights
	Policies Compared
	// Accepted is a write that a policy must refuse, and that the API server would have taken.
	Accepted bool
}

// Prove asks with the client of the operator, which runs in a namespace and looks after others,
// none for all, whether it has its rights, whether the policies are those of this release, and
// whether they bite: a task that it makes up by itself must be refused to it.
func Prove(ctx context.Context, c client.Client, namespace string, watched []string) (Proof, error) {
	var out Proof
	wanted, err := Manifest(namespace)
	if err != nil {
		return out, err
	}
	out.Rights, err = AskFor(ctx, wanted, watched,
		func(ctx context.Context, right *authorizationv1.ResourceAttributes) (bool, error) {
			review := &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: right}}
			err := c.Create(ctx, review)
			return review.Status.Allowed, err
		})
	if err != nil {
		return out, err
	}
	if len(out.Rights.Missing) > 0 {
		return out, nil // what follows takes rights
	}
	if out.Policies, err = Compare(ctx, c, wanted, Policies...); err != nil {
		return out, err
	}
	in := slices.Concat(watched, []string{namespace})[0]
	task := &v1alpha1.CassandraTask{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "helenus-proof"}}
	task.Spec.Type, task.Spec.Cluster.Name = v1alpha1.TaskFlush, "helenus-proof"
	err = c.Create(ctx, task, client.DryRunAll)
	if out.Accepted = err == nil; err != nil && !strings.Contains(err.Error(), "'helenus-cluster'") {
		return out, fmt.Errorf("try a write that policy helenus-cluster refuses: %w", err)
	}
	return out, nil
}

// Problem is what is wrong, with the reason of the condition; nil if nothing is.
func (p Proof) Problem() (reason string, err error) {
	switch {
	case len(p.Rights.Missing) > 0:
		return "RightsMissing", fmt.Errorf("the operator may not %s", words.List(p.Rights.Missing, mostNames))
	case len(p.Policies.Missing) > 0:
		return "PoliciesMissing", fmt.Errorf("admission policies are missing: %s",
			words.List(p.Policies.Missing, mostNames))
	case len(p.Policies.Different) > 0:
		return "PoliciesMissing", fmt.Errorf("admission policies are not as in this release: %s",
			words.List(p.Policies.Different, mostNames))
	case p.Accepted:
		return "PoliciesMissing", errors.New("a write that policy helenus-cluster must refuse was accepted (a dry run)")
	}
	return "", nil
}
