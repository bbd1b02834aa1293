package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"helenus.io/helenus/internal/installation"
)

// proofAgain is when an installation that is not proven is looked at again: nobody tells when a
// right is given.
const proofAgain = 10 * time.Minute

// addProof has the replica that leads prove its installation at its start, by a client of its own:
// passes do not wait for as many questions. It ends nothing, whatever comes of it.
func addProof(m manager.Manager, o Options, proven func(metav1.ConditionStatus)) error {
	namespace := o.Install.Namespace
	if namespace == "" {
		return nil // it runs in no pod, with the rights of a person
	}
	config := rest.CopyConfig(m.GetConfig())
	config.RateLimiter = nil
	c, err := client.New(config, client.Options{Scheme: m.GetScheme(), Mapper: m.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("make a client for the proof of the installation: %w", err)
	}
	if err := m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		_ = wait.PollUntilContextCancel(ctx, proofAgain, true, func(ctx context.Context) (bool, error) {
			condition := prove(ctx, c, namespace, o.Namespaces, o.Log)
			proven(condition.Status)
			return condition.Status == metav1.ConditionTrue, nil
		})
		return nil
	})); err != nil {
		return fmt.Errorf("add the proof of the installation: %w", err)
	}
	return nil
}

// prove says what is wrong with an installation, in the log and in its ConfigMap.
func prove(ctx context.Context, c client.Client, namespace string, watched []string, log logr.Logger) metav1.Condition {
	proof, err := installation.Prove(ctx, c, namespace, watched)
	condition := proof.Condition(time.Now(), err)
	if condition.Status != metav1.ConditionTrue {
		log.Info("the installation is not proven", "reason", condition.Reason, "message", condition.Message)
	}
	if was, err := installation.ReadStatus(ctx, c, namespace); err == nil && was.Status == condition.Status &&
		was.Message == condition.Message {
		return condition
	}
	if err := installation.WriteStatus(ctx, c, namespace, condition); err != nil {
		log.Error(err, "say whether the installation is proven")
	}
	return condition
}
