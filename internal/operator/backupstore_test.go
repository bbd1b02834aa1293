package operator

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/act"
	"helenus.io/helenus/internal/observe"
)

// bucket is a service with a bucket that nobody may use without a key.
func bucket(t *testing.T) *httptest.Server {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("backups"); err != nil {
		t.Fatal(err)
	}
	service := gofakes3.New(backend).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		service.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server
}

func storeAt(server *httptest.Server) *v1alpha1.CassandraBackupStore {
	return &v1alpha1.CassandraBackupStore{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "main", Generation: 1},
		Spec: v1alpha1.BackupStoreSpec{S3: &v1alpha1.S3Store{Bucket: "backups", Region: "eu-1", Endpoint: server.URL,
			SecretName: "key"}}}
}

func kinds(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// A store is checked with the service itself, and again when its Secret has changed.
func TestABackupStoreIsChecked(t *testing.T) {
	server := bucket(t)
	store := storeAt(server)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "key"}}
	c := fake.NewClientBuilder().WithScheme(kinds(t)).WithObjects(store, secret).WithStatusSubresource(store).Build()
	now, events := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), &told{}
	r := &BackupStores{Reader: &observe.Reader{Cache: c, Live: c},
		Writer: &act.Writer{Client: c, Live: c, Recorder: events, Now: time.Now},
		Now:    func() time.Time { return now }}
	key := client.ObjectKeyFromObject(store)
	pass := func(want string) {
		t.Helper()
		if result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil ||
			result.RequeueAfter != time.Minute {
			t.Fatalf("again in %s, %v", result.RequeueAfter, err)
		}
		if err := c.Get(t.Context(), key, store); err != nil {
			t.Fatal(err)
		}
		if got := meta.FindStatusCondition(store.Status.Conditions, v1alpha1.ConditionReady); got.Reason != want {
			t.Errorf("%s: %s, want %s", got.Reason, got.Message, want)
		}
	}
	pass(v1alpha1.ReasonSecretInvalid)
	secret.Data = map[string][]byte{v1alpha1.KeyAccessKeyID: []byte("someone"),
		v1alpha1.KeySecretAccessKey: []byte("secret")}
	if err := c.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	pass(v1alpha1.ReasonStoreUsable)
	version := store.ResourceVersion
	now = now.Add(time.Minute)
	if pass(v1alpha1.ReasonStoreUsable); store.ResourceVersion != version {
		t.Error("the status was written though nothing has changed")
	}
	server.Close()
	now = now.Add(time.Hour)
	pass(v1alpha1.ReasonStoreUnreachable)
	if err := c.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	pass(v1alpha1.ReasonSecretMissing)
	if len(*events) != 4 {
		t.Errorf("people were told %v", *events)
	}
}

// A store without a Secret is checked by the identity of the operator's own pod. With encryption it
// has one again.
func TestABackupStoreOfAServiceAccount(t *testing.T) {
	identity := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"AccessKeyId":"someone","SecretAccessKey":"secret","Token":"token","Expiration":%q}`,
			time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	t.Cleanup(identity.Close)
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "")
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", identity.URL)
	store := storeAt(bucket(t))
	store.Spec.S3.SecretName, store.Spec.S3.ServiceAccount = "", true
	c := fake.NewClientBuilder().WithScheme(kinds(t)).WithObjects(store).WithStatusSubresource(store).Build()
	r := &BackupStores{Reader: &observe.Reader{Cache: c, Live: c},
		Writer: &act.Writer{Client: c, Live: c, Recorder: &told{}, Now: time.Now}, Now: time.Now}
	key := client.ObjectKeyFromObject(store)
	pass := func(want string) {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), key, store); err != nil {
			t.Fatal(err)
		}
		if got := meta.FindStatusCondition(store.Status.Conditions, v1alpha1.ConditionReady); got.Reason != want ||
			store.Status.CheckedSecret != "" {
			t.Errorf("%s: %s, want %s", got.Reason, got.Message, want)
		}
	}
	pass(v1alpha1.ReasonStoreUsable)
	store.Spec.Encryption = &v1alpha1.StoreEncryption{Mode: v1alpha1.StoreEncryptionClient, SecretName: "lines"}
	if err := c.Update(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	pass(v1alpha1.ReasonSecretMissing)
}
