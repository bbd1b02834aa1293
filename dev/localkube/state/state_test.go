package state

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestSaveAndLoad(t *testing.T) {
	dir := Dir(filepath.Join(t.TempDir(), "x"))
	if _, err := dir.Load(); !errors.Is(err, ErrNoCluster) {
		t.Fatalf("error %v, want ErrNoCluster", err)
	}
	want := &Cluster{Name: "x", KubernetesVersion: "1.35.4", Subnet: 250,
		Nodes: []Node{{Name: "n1", Zone: "a", Index: 1, Killed: true}}}
	if err := dir.Save(want); err != nil {
		t.Fatal(err)
	}
	got, err := dir.Load()
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("loaded %+v, want %+v", got, want)
	}
	if err := WriteFile(filepath.Join(string(dir), "cluster.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Load(); err == nil || errors.Is(err, ErrNoCluster) || !strings.Contains(err.Error(), "`down`") {
		t.Errorf("error %v, want one that says what to do", err)
	}
}

func TestNodeNamesThoseThereAre(t *testing.T) {
	c := &Cluster{Name: "x", Nodes: []Node{{Name: "n1"}, {Name: "n2"}}}
	if n, err := c.Node("n2"); err != nil || n != &c.Nodes[1] {
		t.Errorf("got %v, %v", n, err)
	}
	if _, err := c.Node("n3"); err == nil || !strings.Contains(err.Error(), "n1, n2") {
		t.Errorf("error %v, want one that names n1 and n2", err)
	}
	if _, err := (&Cluster{APIOnly: true}).Node("n1"); err == nil || !strings.Contains(err.Error(), "--api-only") {
		t.Errorf("error %v, want one that names --api-only", err)
	}
}

func TestValidateName(t *testing.T) {
	for name, ok := range map[string]bool{
		"a": true, "helenus": true, "api-1": true, strings.Repeat("a", 32): true,
		"": false, "-a": false, "a-": false, "A": false, "a/b": false, "..": false, "a.b": false,
		strings.Repeat("a", 33): false,
	} {
		if err := ValidateName(name); (err == nil) != ok {
			t.Errorf("%q: error %v", name, err)
		}
	}
}

func TestLockExcludesAndLeavesNoFile(t *testing.T) {
	base := t.TempDir()
	dir := Dir(filepath.Join(base, "x"))
	const holders, rounds = 8, 25
	var inside atomic.Int32
	var wg sync.WaitGroup
	for range holders {
		wg.Go(func() {
			for range rounds {
				unlock, err := dir.Lock()
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d have the lock at once", n)
				}
				inside.Add(-1)
				unlock()
			}
		})
	}
	wg.Wait()
	if left, err := os.ReadDir(base); err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}
