package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"helenus.io/helenus/api/v1alpha1"
)

const (
	// checked is the prefix of the objects of checks. Those of a check that was cut short are
	// removed by one that is later by leftFor.
	checked = "checks/"
	leftFor = time.Hour
)

// Check tries whatever backups rely on with an object of its own, which it removes: it is written,
// not written again, read, listed, deleted, and nobody without credentials can read it. What is
// there must be encrypted as the store is. Who names the store among those that share its prefix.
func Check(ctx context.Context, s Store, who string, now time.Time) (err error) {
	prefix := checked + who + "/"
	name := func(at time.Time) string { return fmt.Sprintf("%s%019d", prefix, at.UnixNano()) }
	key, want := name(now), []byte(now.Format(time.RFC3339Nano))
	put := func(content []byte) error { return s.Put(ctx, key, bytes.NewReader(content), int64(len(content))) }
	if err := put(want); err != nil && !errors.Is(err, ErrExists) { // ErrExists: an answer was lost
		return err
	}
	defer func() {
		if deleted := s.Delete(context.WithoutCancel(ctx), key); err == nil {
			err = deleted
		}
	}()
	if err := put([]byte("other")); !errors.Is(err, ErrExists) {
		if err != nil {
			return err
		}
		return unsupported("an object was overwritten though it was to be written only where there is none " +
			"(If-None-Match)")
	}
	if err := same(ctx, s, key, want); err != nil {
		return err
	}
	if err := matching(ctx, s); err != nil {
		return err
	}
	of := s
	if e, is := s.(*encrypted); is {
		of = e.Store
	}
	if l, is := of.(*S3); is {
		if err := l.lockable(ctx); err != nil {
			return err
		}
	}
	if p, is := of.(interface {
		Public(context.Context, string) (bool, error)
	}); is {
		switch public, err := p.Public(ctx, key); {
		case err != nil:
			return err
		case public:
			return &Problem{Reason: v1alpha1.ReasonBucketPublic, Request: "read object " + key + " without credentials",
				Err: errors.New("it was allowed"), Help: "forbid anonymous access to the bucket: backups hold all data"}
		}
	}
	return listed(ctx, s, prefix, key, name(now.Add(-leftFor)))
}

// same reads the object.
func same(ctx context.Context, s Store, key string, want []byte) error {
	r, err := s.Get(ctx, key)
	if err != nil {
		return missing(err, "read")
	}
	defer func() { _ = r.Close() }()
	got, err := io.ReadAll(io.LimitReader(r, int64(len(want))+1))
	if err != nil {
		return err
	}
	size, err := s.Size(ctx, key)
	if err != nil {
		return missing(err, "found")
	}
	if !bytes.Equal(got, want) || size != int64(len(want)) {
		return unsupported("an object was read otherwise than it was written")
	}
	return nil
}

// listed looks for the object in a list, and removes those that are older than one of a name.
func listed(ctx context.Context, s Store, prefix, key, before string) error {
	there, old := false, []string{}
	if err := s.List(ctx, prefix, func(o Object) error {
		there = there || o.Key == key
		if o.Key < before {
			old = append(old, o.Key)
		}
		return nil
	}); err != nil {
		return err
	}
	if !there {
		return unsupported("an object that was written is not listed")
	}
	for _, key := range old {
		if err := s.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// missing says that an object which was written is not there.
func missing(err error, verb string) error {
	if errors.Is(err, ErrNotFound) {
		return unsupported("an object that was written cannot be " + verb)
	}
	return err
}

func unsupported(what string) error {
	return &Problem{Reason: v1alpha1.ReasonUnsupportedService, Request: "check the store", Err: errors.New(what),
		Help: "use a service, or a release of it, on which backups can rely"}
}
