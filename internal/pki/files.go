package pki

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Files reads material from a directory as the kubelet mounts a Secret, and again whenever the
// files have changed. It looks when it is asked, which is once per connection: no watch can be
// missed, and an idle process does nothing.
type Files struct {
	directory string

	mu       sync.Mutex
	stamp    stamp
	material *Material
}

// NewFiles reads from a directory with tls.crt, tls.key and ca.crt. It does not look yet.
func NewFiles(directory string) *Files { return &Files{directory: directory} }

// stamp tells one state of the files from another. The kubelet exchanges a directory as a whole,
// behind a symbolic link, so each file has another inode.
type stamp [3]struct {
	changed time.Time
	size    int64
	info    os.FileInfo
}

func (s stamp) same(other stamp) bool {
	for i := range s {
		if !s[i].changed.Equal(other[i].changed) || s[i].size != other[i].size ||
			!os.SameFile(s[i].info, other[i].info) {
			return false
		}
	}
	return true
}

// Material is a Source. While new files cannot be read, or do not fit each other, it continues with
// what it read last.
func (f *Files) Material() (*Material, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, err := f.look()
	if err == nil && f.material != nil && now.same(f.stamp) {
		return f.material, nil
	}
	var material *Material
	if err == nil {
		material, err = f.read()
	}
	if err != nil {
		if f.material != nil {
			return f.material, nil
		}
		return nil, err
	}
	f.stamp, f.material = now, material
	return material, nil
}

func (f *Files) look() (stamp, error) {
	var s stamp
	for i, name := range []string{KeyCertificate, KeyPrivateKey, KeyBundle} {
		info, err := os.Stat(filepath.Join(f.directory, name))
		if err != nil {
			return s, fmt.Errorf("look at certificates: %w", err)
		}
		s[i].changed, s[i].size, s[i].info = info.ModTime(), info.Size(), info
	}
	return s, nil
}

func (f *Files) read() (*Material, error) {
	certificate, err1 := os.ReadFile(filepath.Join(f.directory, KeyCertificate))
	key, err2 := os.ReadFile(filepath.Join(f.directory, KeyPrivateKey))
	bundle, err3 := os.ReadFile(filepath.Join(f.directory, KeyBundle))
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("read certificates: %w", err)
	}
	return NewMaterial(Pair{Certificate: certificate, Key: key}, bundle)
}
