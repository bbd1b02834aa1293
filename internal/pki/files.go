package pki

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sync"
)

// Files reads material from a directory as the kubelet mounts a Secret. It reads when it is asked,
// which is once per connection: no watch can be missed, and an idle process does nothing.
type Files struct {
	directory string

	mu       sync.Mutex
	read     [3][]byte // what material was made from
	material *Material
}

// NewFiles reads from a directory with tls.crt, tls.key and ca.crt. It does not look yet.
func NewFiles(directory string) *Files { return &Files{directory: directory} }

// Material is a Source. While new files cannot be read, or do not fit each other, it continues with
// what it read last.
func (f *Files) Material() (*Material, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var now [3][]byte
	var errs [3]error
	for i, name := range []string{KeyCertificate, KeyPrivateKey, KeyBundle} {
		now[i], errs[i] = os.ReadFile(filepath.Join(f.directory, name))
	}
	err := errors.Join(errs[:]...)
	if err != nil {
		err = fmt.Errorf("read certificates: %w", err)
	} else if !reflect.DeepEqual(now, f.read) {
		var material *Material
		if material, err = NewMaterial(Pair{Certificate: now[0], Key: now[1]}, now[2]); err == nil {
			f.read, f.material = now, material
		}
	}
	if f.material != nil {
		return f.material, nil
	}
	return nil, err
}
