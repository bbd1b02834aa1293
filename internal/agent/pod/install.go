package pod

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Installation is what the agent's image hands to the Cassandra container.
type Installation struct {
	// Init is helenus-init in the agent's image, InitTarget where the Cassandra container executes
	// it.
	Init, InitTarget string
	// Lib is the directory with the Java agents in the agent's image, Library where the JVM finds
	// them.
	Lib, Library string
}

// Install puts everything in place. It is called at every start of the agent: each file appears
// whole, and one that is in use is not touched.
func Install(i Installation) error {
	for _, directory := range []string{i.Library, filepath.Dir(i.InitTarget)} {
		// Shared with the Cassandra container, which has the same group.
		if err := os.MkdirAll(directory, 0o775); err != nil {
			return fmt.Errorf("make the directories of the shared volume: %w", err)
		}
	}
	for _, jar := range []struct {
		pattern, name string
		required      bool
	}{{"jolokia*.jar", JolokiaJar, true}, {MetricsJar, MetricsJar, false}} {
		found, err := filepath.Glob(filepath.Join(i.Lib, jar.pattern))
		if err != nil {
			return fmt.Errorf("look for %s: %w", jar.pattern, err)
		}
		if len(found) == 0 && jar.required {
			return fmt.Errorf("no %s in %s: the agent's image is not complete", jar.pattern, i.Lib)
		}
		if len(found) == 0 {
			continue
		}
		slices.Sort(found)
		if err := copyFile(found[len(found)-1], filepath.Join(i.Library, jar.name), readable); err != nil {
			return err
		}
	}
	// Last: from then on the Cassandra container may start.
	return copyFile(i.Init, i.InitTarget, 0o555)
}

// readable is the mode of what the JVM reads. Nothing of it is secret.
const readable fs.FileMode = 0o644

func copyFile(from, to string, mode fs.FileMode) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("install %s: %w", filepath.Base(to), err)
	}
	return publish(to, text, mode)
}

// publish writes a file so that it appears whole or not at all. One that runs is not touched: it
// lives on until its process ends.
func publish(path string, text []byte, mode fs.FileMode) error {
	next, err := os.CreateTemp(filepath.Dir(path), ".helenus-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	defer func() { _ = os.Remove(next.Name()) }() // gone after the rename
	_, err = next.Write(text)
	// Closed before the rename: a file open for writing cannot be executed.
	if err := errors.Join(err, next.Chmod(mode), next.Close()); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	if err := os.Rename(next.Name(), path); err != nil {
		return fmt.Errorf("publish %s: %w", filepath.Base(path), err)
	}
	return nil
}

// Password is the credential of Jolokia in this pod: made once, and kept in the agent's private
// directory, because a JVM that runs continues asking for it when the agent is a new one.
func Password(directory string) (string, error) {
	path := filepath.Join(directory, "jolokia.password")
	text, err := os.ReadFile(path)
	if err == nil && len(strings.TrimSpace(string(text))) > 0 {
		return strings.TrimSpace(string(text)), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read credential of Jolokia: %w", err)
	}
	password := rand.Text()
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return "", fmt.Errorf("keep credential of Jolokia: %w", err)
	}
	if err := publish(path, []byte(password), 0o600); err != nil {
		return "", fmt.Errorf("keep credential of Jolokia: %w", err)
	}
	return password, nil
}
