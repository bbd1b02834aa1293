package pod

import (
	"errors"
	"maps"
	"time"

	agentpod "helenus.io/helenus/internal/agent/pod"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/simulate/cassandra"
)

// files is the shared volume of a pod: the image's configuration and what the agent rendered from
// it.
type files struct {
	base config.Files
	// rendered is the directory that Cassandra is started on. The JVM shares it, since it reads
	// cassandra.yaml again when it reloads its seeds.
	rendered config.Files
	// last is how the JVM ended the last time.
	last cassandra.Exit
}

// Base reads the image's own configuration.
func (f *files) Base(directory string) (config.Files, error) {
	if directory == "" {
		return nil, errors.New("helenus-init has not copied the image's configuration")
	}
	return maps.Clone(f.base), nil
}

// Install recreates the configuration directory.
func (f *files) Install(_ string, rendered config.Files) error {
	f.rendered = maps.Clone(f.base)
	maps.Copy(f.rendered, rendered)
	return nil
}

// Read one file of it.
func (f *files) Read(name string) ([]byte, error) {
	text, ok := f.rendered[name]
	if !ok {
		return nil, errors.New("read configuration: " + name + " does not exist")
	}
	return text, nil
}

// Replace one file of it.
func (f *files) Replace(name string, content []byte) error {
	if f.rendered == nil {
		return errors.New("publish configuration: there is no directory")
	}
	f.rendered[name] = content
	return nil
}

// Complete adds what only the pod knows.
func (f *files) Complete(n *config.Node) error {
	paths := agentpod.DefaultPaths(false)
	n.Directories = config.Directories{Configuration: paths.Configuration, Logs: paths.Logs,
		Temporary: paths.Temporary}.OnVolumes(paths.Data, paths.Commitlog)
	n.Jolokia = config.Jolokia{Jar: layout.LibraryDir + "/" + agentpod.JolokiaJar, Port: layout.JolokiaPort,
		User: "helenus", Password: "simulated"}
	return nil
}

// FatalLine is by what the JVM explained its end.
func (f *files) FatalLine(since time.Time) string {
	if f.last.At.Before(since) {
		return ""
	}
	return f.last.FatalLine
}
