package store

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"

	"helenus.io/helenus/api/v1alpha1"
)

// ErrDamaged means that an object is not what was written, or not encrypted, and ErrNoIdentity that
// it is encrypted for somebody else, which looks the same as damage at its beginning.
var (
	ErrDamaged    = errors.New("its content is not what was written")
	ErrNoIdentity = errors.New("no identity decrypts it")
)

// Of an object of age for one X25519 recipient: its header with the nonce, and its pieces, each of
// which has a tag. The last piece may be smaller, and alone be empty.
const (
	sealedHead = 168 + 16
	piece      = 64 << 10
	pieceTag   = 16
)

// blobNaming is for what an identity is the key of a HMAC.
const blobNaming = "helenus.io/blobs"

// encrypted is a store whose objects are encrypted, of all sizes as they are in plain. What keys of
// objects say is not.
type encrypted struct {
	Store
	// secret is the name of the one that has the identities.
	secret string
	// recipients of the identities, in their order. The first is who objects are encrypted for.
	identities []age.Identity
	recipients []*age.X25519Recipient
	naming     []byte
}

// Encrypt has all objects of a store encrypted for the first of some identities. All of them are
// tried to read one. Secret is the name of the one that has them.
func Encrypt(s Store, secret string, identities []byte) (Store, error) {
	invalid := func(err error) error {
		return &Problem{Reason: v1alpha1.ReasonSecretInvalid,
			Request: fmt.Sprintf("read %s of Secret %s", v1alpha1.KeyIdentities, secret), Err: err,
			Help: "it must have a line that begins with AGE-SECRET-KEY-1, as age-keygen writes it"}
	}
	if len(bytes.TrimSpace(identities)) == 0 {
		return nil, invalid(errors.New("it is empty or not there"))
	}
	parsed, err := age.ParseIdentities(bytes.NewReader(identities))
	if err != nil {
		return nil, invalid(errors.New("a line of it is no identity")) // the error may have the line
	}
	e := &encrypted{Store: s, secret: secret, identities: parsed}
	for _, p := range parsed {
		identity, is := p.(*age.X25519Identity)
		if !is {
			return nil, invalid(errors.New("an identity of it is none of X25519"))
		}
		if e.recipients = append(e.recipients, identity.Recipient()); e.naming == nil {
			mac := hmac.New(sha256.New, []byte(identity.String()))
			_, _ = mac.Write([]byte(blobNaming))
			e.naming = mac.Sum(nil)
		}
	}
	return e, nil
}

// BlobName is the hash by which the content with a SHA-256 is named in a store: that one or, where
// it is encrypted, the HMAC of it, which tells nobody without the identity what the content is.
func BlobName(s Store, sum [sha256.Size]byte) [sha256.Size]byte {
	e, is := s.(*encrypted)
	if !is {
		return sum
	}
	mac := hmac.New(sha256.New, e.naming)
	_, _ = mac.Write(sum[:])
	return [sha256.Size]byte(mac.Sum(nil))
}

// sealed is how many bytes of content become, and plain how many they were; -1 if they are no
// object of age.
func sealed(size int64) int64 { return sealedHead + size + pieceTag*max(1, (size+piece-1)/piece) }

func plain(size int64) int64 {
	size -= sealedHead
	out := size - pieceTag*((size+piece+pieceTag-1)/(piece+pieceTag))
	if out < 0 || sealed(out) != size+sealedHead {
		return -1
	}
	return out
}

// Put encrypts the content while it is written.
func (e *encrypted) Put(ctx context.Context, key string, content io.Reader, size int64) error {
	from, err := age.EncryptReader(content, e.recipients[0])
	if err != nil {
		return fmt.Errorf("encrypt object %s: %w", key, err)
	}
	return e.Store.Put(ctx, key, from, sealed(size)) //nolint:wrapcheck // it is ours
}

// Get decrypts while it is read. What is read was found right.
func (e *encrypted) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	object, err := e.Store.Get(ctx, key)
	if err != nil {
		return nil, err //nolint:wrapcheck // it is ours
	}
	d := &decrypted{key: key, object: object}
	if d.plain, err = age.Decrypt(readerFunc(d.fetch), e.identities...); err == nil {
		return d, nil
	}
	var other *age.NoIdentityMatchError
	if errors.As(err, &other) {
		d.failed = &Problem{Reason: v1alpha1.ReasonEncryptionMismatch, Request: "read object " + key,
			Err: fmt.Errorf("%w of %s in Secret %s", ErrNoIdentity, v1alpha1.KeyIdentities, e.secret),
			Help: "add the identity that it was encrypted for as a further line; if that is there, the object is " +
				"damaged"}
	}
	return nil, errors.Join(d.wrong(err), object.Close())
}

// decrypted is an object that is read. Failed is why its bytes did not come, if they did not.
type decrypted struct {
	key    string
	object io.ReadCloser
	plain  io.Reader
	failed error
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func (d *decrypted) fetch(p []byte) (int, error) {
	n, err := d.object.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		d.failed = err
	}
	return n, err //nolint:wrapcheck // it says what it is about
}

func (d *decrypted) wrong(err error) error {
	if d.failed != nil {
		return d.failed
	}
	return fmt.Errorf("read object %s: %w: decrypt it: %w", d.key, ErrDamaged, err)
}

// Read implements io.Reader.
func (d *decrypted) Read(p []byte) (int, error) {
	n, err := d.plain.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // that of age is not wrapped at a true end
		err = d.wrong(err)
	}
	return n, err //nolint:wrapcheck // it is ours
}

// Close implements io.Closer.
func (d *decrypted) Close() error { return d.object.Close() }

// Size is that of the content; -1 if the object has one that none has.
func (e *encrypted) Size(ctx context.Context, key string) (int64, error) {
	size, err := e.Store.Size(ctx, key)
	return plain(size), err //nolint:wrapcheck // it is ours
}

// List has the sizes of the contents.
func (e *encrypted) List(ctx context.Context, prefix string, each func(Object) error) error {
	return e.Store.List(ctx, prefix, func(o Object) error { //nolint:wrapcheck // it is ours
		o.Size = plain(o.Size)
		return each(o)
	})
}

const (
	// keysPrefix is that of objects that say how those of a store are encrypted: of each recipient
	// one by its name, and unencrypted if there are such.
	keysPrefix  = "encryption/"
	unencrypted = "None"
)

// matching says that all that is in a store can be read with the identities, and says in it for
// whom they are.
func matching(ctx context.Context, s Store) error {
	e, is := s.(*encrypted)
	ours, there := map[string]bool{unencrypted: true}, map[string]bool{}
	own := unencrypted
	if is {
		own, ours = e.recipients[0].String(), map[string]bool{}
		for _, r := range e.recipients {
			ours[r.String()] = true
		}
	}
	if err := s.List(ctx, keysPrefix, func(o Object) error {
		name := o.Key[len(keysPrefix):]
		there[name] = true
		if ours[name] {
			return nil
		}
		p := &Problem{Reason: v1alpha1.ReasonEncryptionMismatch, Request: "look at " + o.Key}
		switch {
		case name == unencrypted:
			p.Err = errors.New("objects of the store are not encrypted")
			p.Help = "create a store with encryption.mode None for them, and use another prefix here"
		case !is:
			p.Err = errors.New("objects of the store are encrypted for " + name)
			p.Help = "create a store with encryption.mode Client for them, and use another prefix here"
		default:
			p.Err = fmt.Errorf("objects of the store are encrypted for %s, and %s of Secret %s does not have its "+
				"identity", name, v1alpha1.KeyIdentities, e.secret)
			p.Help = "add it as a further line; when no backup of it is needed any more, delete that object"
		}
		return p
	}); err != nil {
		return err //nolint:wrapcheck // it is ours
	}
	key := keysPrefix + own
	if !there[own] {
		if err := s.Put(ctx, key, bytes.NewReader(nil), 0); err != nil && !errors.Is(err, ErrExists) {
			return err //nolint:wrapcheck // it is ours
		}
	}
	return same(ctx, s, key, nil)
}
