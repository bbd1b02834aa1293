package cache

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestKeepRefusesOtherContent(t *testing.T) {
	c, err := At(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "x.jar")
	if err := os.WriteFile(file, []byte("content"), 0o644); err != nil {
		t.Fatal(err)
	}
	right, err := SHA256(file)
	if err != nil {
		t.Fatal(err)
	}
	wrong := "0000000000000000000000000000000000000000000000000000000000000000"
	var refused *WrongHashError
	if err := c.Keep("x", file, wrong); !errors.As(err, &refused) || refused.Got != right {
		t.Fatalf("got error %v, want a WrongHashError that names %s", err, right)
	}
	if c.Has(wrong) {
		t.Error("a file with another hash is in the cache")
	}
	if err := c.Keep("x", file, right); err != nil {
		t.Fatal(err)
	}
	if !c.Has(right) {
		t.Error("the file is not in the cache")
	}
}

func TestWriteFileLeavesNothingAfterAnError(t *testing.T) {
	directory := t.TempDir()
	fail := errors.New("disk full")
	err := WriteFile(filepath.Join(directory, "x"), func(w io.Writer) error {
		if _, err := w.Write([]byte("half")); err != nil {
			return err
		}
		return fail
	})
	if !errors.Is(err, fail) {
		t.Fatalf("got error %v, want %v", err, fail)
	}
	left, err := os.ReadDir(directory)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

func TestOpenChoosesDirectory(t *testing.T) {
	chosen := filepath.Join(t.TempDir(), "chosen")
	t.Setenv("HELENUS_CACHE", chosen)
	c, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(chosen, "images", "x.tar"); c.Image("x") != want {
		t.Errorf("image lies at %s, want %s", c.Image("x"), want)
	}
	base := t.TempDir()
	t.Setenv("HELENUS_CACHE", "")
	t.Setenv("XDG_CACHE_HOME", base)
	if c, err = Open(); err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(base, "helenus"); c.Root() != want {
		t.Errorf("cache is %s, want %s", c.Root(), want)
	}
}
