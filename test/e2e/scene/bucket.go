package scene

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/backup/sweep"
)

// BucketName is what every bucket is called.
const BucketName = "backups"

// Bucket is an object store in this process, in memory, which knows what it was asked for.
type Bucket struct {
	store.Store
	// Address is host and port, by which pods reach it.
	Address string

	// ahead is by how many nanoseconds its clock is.
	ahead  atomic.Int64
	server *http.Server
	mutex  sync.Mutex
	asked  []Asked
}

// Asked is one request to a bucket, and the bytes of its content and of the answer's.
type Asked struct {
	// From is the address of who has asked.
	From, Method, Key string
	Began, Ended      time.Time
	Sent, Received    int64
}

// Bucket serves one until it is closed, and makes a CassandraBackupStore of it. Its requests pass
// what is in front of it, the first of these last.
func (r *Ring) Bucket(ctx context.Context, name string, front ...func(http.Handler) http.Handler) (_ *Bucket,
	err error) {
	route, err := net.Dial("udp", net.JoinHostPort(r.Nodes(ctx)[0].Status.Address, "9")) //nolint:noctx // sends nothing
	if err != nil {
		return nil, fmt.Errorf("find the way to the ring: %w", err)
	}
	address, _, err := net.SplitHostPort(route.LocalAddr().String())
	if err := errors.Join(err, route.Close()); err != nil {
		return nil, fmt.Errorf("find the way to the ring: %w", err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0")) //nolint:noctx // open until it is closed
	if err != nil {
		return nil, fmt.Errorf("serve a bucket: %w", err)
	}
	b := &Bucket{Address: listener.Addr().String()}
	backend := s3mem.New(s3mem.WithTimeSource(clock{gofakes3.DefaultTimeSource(), &b.ahead}))
	if err := backend.CreateBucket(BucketName); err != nil {
		return nil, errors.Join(fmt.Errorf("create bucket: %w", err), listener.Close())
	}
	service := gofakes3.New(backend).Server()
	for _, before := range front {
		service = before(service)
	}
	b.server = &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: b.note(service)}
	go func() { _ = b.server.Serve(listener) }() // until it is closed
	defer func() {
		if err != nil {
			b.Close()
		}
	}()
	secret := name + "-keys"
	keys := map[string][]byte{v1alpha1.KeyAccessKeyID: []byte("id"), v1alpha1.KeySecretAccessKey: []byte("key")}
	spec := v1alpha1.BackupStoreSpec{S3: &v1alpha1.S3Store{Bucket: BucketName, Region: "eu-1",
		Endpoint: "http://" + b.Address, SecretName: secret}}
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: r.Namespace, Name: name} }
	if err := errors.Join(
		r.Kubernetes.Client.Create(ctx, &corev1.Secret{ObjectMeta: named(secret), Data: keys}),
		r.Kubernetes.Client.Create(ctx, &v1alpha1.CassandraBackupStore{ObjectMeta: named(name), Spec: spec}),
	); err != nil {
		return nil, fmt.Errorf("create store %s: %w", name, err)
	}
	b.Store, err = store.Open(spec, keys)
	return b, err
}

// Close ends it, with all that is in it.
func (b *Bucket) Close() { _ = b.server.Close() } // what is under way fails, as it should

// SetClock has the clock of the store be ahead of that of this machine, or behind it. Objects that
// are there stay as old as they are.
func (b *Bucket) SetClock(ahead time.Duration) { b.ahead.Store(int64(ahead)) }

// clock is one that is ahead of another.
type clock struct {
	gofakes3.TimeSource
	ahead *atomic.Int64
}

func (c clock) Now() time.Time { return c.TimeSource.Now().Add(time.Duration(c.ahead.Load())) }

// Swept waits until a sweep of what a store has of the ring has ended since a time.
func (r *Ring) Swept(ctx context.Context, in store.Store, since time.Time) error {
	return r.poll(ctx, comeback, "the store is swept", func(ctx context.Context) error {
		marks, err := sweep.LastMarks(ctx, in, string(r.UID))
		if err == nil && (marks == nil || marks.At.Before(since)) {
			err = fmt.Errorf("its marks are %+v", marks)
		}
		return err
	})
}

// Asked are the requests that have begun since a time and ended, in the order of their ends.
func (b *Bucket) Asked(since time.Time) []Asked {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return slices.DeleteFunc(slices.Clone(b.asked), func(a Asked) bool { return a.Began.Before(since) })
}

// note what is asked of a service. It refuses what has no credentials, else the store would be
// refused as public.
func (b *Bucket) note(service http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		from, _, _ := net.SplitHostPort(r.RemoteAddr)
		asked := Asked{From: from, Method: r.Method, Key: strings.TrimPrefix(r.URL.Path, "/"+BucketName+"/"),
			Began: time.Now()}
		r.Body = counted{r.Body, &asked.Sent}
		service.ServeHTTP(countedAnswer{w, &asked.Received}, r)
		asked.Ended = time.Now()
		b.mutex.Lock()
		defer b.mutex.Unlock()
		b.asked = append(b.asked, asked)
	})
}

type counted struct {
	io.ReadCloser
	bytes *int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	*c.bytes += int64(n)
	return n, err
}

type countedAnswer struct {
	http.ResponseWriter
	bytes *int64
}

func (c countedAnswer) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	*c.bytes += int64(n)
	return n, err
}
