package api

import (
	"context"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// withToken is a client configuration that has nothing but a token.
func withToken(token string) *rest.Config {
	config := rest.AnonymousClientConfig(server)
	config.BearerToken = token
	config.QPS, config.Burst = -1, -1
	config.WarningHandler = rest.NoWarnings{}
	return config
}

// serviceAccount makes a service account.
func serviceAccount(t *testing.T, namespace, name string) {
	t.Helper()
	_, err := typedClient(t, server).CoreV1().ServiceAccounts(namespace).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) { // a controller makes the one named default
		must(t, err)
	}
}

// pod makes a pod that no host will ever run, which is enough for a token to be bound to it.
func pod(t *testing.T, namespace, name, account string) *corev1.Pod {
	t.Helper()
	made, err := typedClient(t, server).CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			ServiceAccountName: account,
			Containers:         []corev1.Container{{Name: "agent", Image: "agent"}},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	return made
}

// tokenOf asks for a token as the kubelet does, bound to a pod if one is given.
func tokenOf(t *testing.T, namespace, account string, bound *corev1.Pod) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	if bound != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod",
			Name: bound.Name, UID: bound.UID}
	}
	made, err := typedClient(t, server).CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, request,
		metav1.CreateOptions{})
	must(t, err)
	return made.Status.Token
}

// secretToken is the token of a Secret, of the kind that never ends.
func secretToken(t *testing.T, namespace, account string) string {
	t.Helper()
	secrets := typedClient(t, server).CoreV1().Secrets(namespace)
	_, err := secrets.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: account + "-token",
			Annotations: map[string]string{corev1.ServiceAccountNameKey: account}},
		Type: corev1.SecretTypeServiceAccountToken,
	}, metav1.CreateOptions{})
	must(t, err)
	var token string
	must(t, eventually(t.Context(), "the token controller fills the Secret", func(ctx context.Context) (bool, error) {
		secret, err := secrets.Get(ctx, account+"-token", metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return false, err
		}
		token = string(secret.Data[corev1.ServiceAccountTokenKey])
		return token != "", nil
	}))
	return token
}
