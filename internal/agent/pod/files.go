package pod

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/layout"
)

// Paths are where things lie. Those of the Cassandra container and the agent's are the same, since
// volumes are mounted at the same place in both.
type Paths struct {
	// Configuration is the directory that Cassandra is started on.
	Configuration string
	// Library holds the Java agents.
	Library string
	// Data and Commitlog are the mount paths of volumes; Commitlog is empty if it has none of its
	// own.
	Data, Commitlog string
	Logs            string
	// Given is where the user's own files of configuration are, if there are any.
	Given     string
	Temporary string
}

// DefaultPaths are those of core/layout.
func DefaultPaths(hasCommitlog bool) Paths {
	p := Paths{
		Configuration: layout.RenderedDir, Library: layout.LibraryDir, Data: layout.DataDir, Logs: layout.LogDir,
		Temporary: "/tmp",
		Given:     layout.ConfigFilesDir,
	}
	if hasCommitlog {
		p.Commitlog = layout.CommitlogDir
	}
	return p
}

// Names of the Java agents in the library.
const (
	JolokiaJar = "jolokia.jar"
	MetricsJar = "helenus-metrics.jar"
)

// Files are the configuration directories of a node.
type Files struct {
	// root is put before every path by which the agent itself reaches a file; the paths in the
	// configuration are those that the JVM sees.
	root     string
	paths    Paths
	password string
	ports    Ports
}

// Ports that the JVM's agents listen on.
type Ports struct {
	Jolokia uint16
	// Metrics; 0 for none.
	Metrics uint16
}

// jolokiaUser is the name that goes with the password of the pod.
const jolokiaUser = "helenus"

// NewFiles renders to paths below root (/ in a pod), with the password that Jolokia is to ask for.
func NewFiles(root string, paths Paths, password string, ports Ports) *Files {
	return &Files{root: root, paths: paths, password: password, ports: ports}
}

// at is where the agent reaches a path.
func (f *Files) at(elements ...string) string {
	return filepath.Join(append([]string{f.root}, elements...)...)
}

// Complete adds what only the pod knows: directories, Java agents, the credential.
func (f *Files) Complete(n *config.Node) error {
	n.Directories = config.Directories{Configuration: f.paths.Configuration, Logs: f.paths.Logs,
		Temporary: f.paths.Temporary}.
		OnVolumes(f.paths.Data, f.paths.Commitlog)
	n.Jolokia = config.Jolokia{Jar: filepath.Join(f.paths.Library, JolokiaJar), Port: f.ports.Jolokia,
		User: jolokiaUser, Password: f.password}
	if f.ports.Metrics > 0 {
		if _, err := os.Stat(f.at(f.paths.Library, MetricsJar)); err == nil {
			n.Metrics = &config.Metrics{Jar: filepath.Join(f.paths.Library, MetricsJar), Port: f.ports.Metrics}
		}
	}
	return nil
}

// maxConfigurationFile is far above any file in a configuration directory, maxConfiguration above
// all of them.
const (
	maxConfigurationFile = 4 << 20
	maxConfiguration     = 32 << 20
)

// Base reads the image's own configuration, with the user's own files over it.
func (f *Files) Base(directory string) (config.Files, error) {
	files, err := f.image(directory)
	if err != nil {
		return nil, err
	}
	given, err := f.given()
	if err != nil {
		return nil, err
	}
	return config.WithGiven(files, given)
}

// given reads the user's own files. A ConfigMap is mounted as links into a hidden directory.
func (f *Files) given() (config.Files, error) {
	if f.paths.Given == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(f.at(f.paths.Given))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read node.configFiles: %w", err)
	}
	files := config.Files{}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "..") {
			continue
		}
		text, err := os.ReadFile(f.at(f.paths.Given, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("read node.configFiles: %w", err)
		}
		files[entry.Name()] = text
	}
	return files, nil
}

func (f *Files) image(directory string) (config.Files, error) {
	if directory == "" {
		return nil, errors.New("helenus-init has not copied the image's configuration")
	}
	under, within := strings.CutPrefix(directory, layout.BaseDir+"/")
	if !within || !filepath.IsLocal(under) || strings.Contains(under, "/") {
		return nil, fmt.Errorf("helenus-init names %q as its copy of the image's configuration, which is not below %s",
			directory, layout.BaseDir)
	}
	shared, err := os.OpenRoot(f.at(layout.SharedDir))
	if err != nil {
		return nil, fmt.Errorf("read the image's configuration: %w", err)
	}
	defer shared.Close() //nolint:errcheck // it was only read
	root, err := shared.OpenRoot(strings.TrimPrefix(directory, layout.SharedDir+"/"))
	if err != nil {
		return nil, fmt.Errorf("read the image's configuration: %w", err)
	}
	defer root.Close() //nolint:errcheck // it was only read
	files, total := config.Files{}, 0
	err = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := readRegular(root, path, maxConfigurationFile)
		if err != nil {
			return err
		}
		if total += len(text); total > maxConfiguration {
			return fmt.Errorf("the files have more than %d bytes", maxConfiguration)
		}
		files[path] = text
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the image's configuration: %w", err)
	}
	return files, nil
}

// readRegular reads a file that Cassandra, which has the same user, may have exchanged: for a link
// to what the agent alone has, for a pipe that never ends. A root is not left by links.
func readRegular(root *os.Root, name string, most int) ([]byte, error) {
	if info, err := root.Lstat(name); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(file, int64(most)+1))
	if err == nil && len(text) > most {
		err = fmt.Errorf("%s has more than %d bytes", name, most)
	}
	return text, err
}

// Install makes the configuration directory anew: a copy of the image's, with the user's own files
// and then the rendered ones over it. No JVM runs meanwhile.
func (f *Files) Install(base string, files config.Files) error {
	present := f.at(f.paths.Configuration)
	next := present + ".next"
	if err := os.RemoveAll(next); err != nil {
		return fmt.Errorf("clear %s: %w", next, err)
	}
	all, err := f.image(base)
	if err != nil {
		return err
	}
	given, err := f.given()
	if err != nil {
		return err
	}
	maps.Copy(all, given)
	maps.Copy(all, files)
	for name, text := range all {
		path := filepath.Join(next, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return fmt.Errorf("make directory of %s: %w", name, err)
		}
		if err := os.WriteFile(path, text, modeOf(name)); err != nil {
			return fmt.Errorf("write configuration: %w", err)
		}
	}
	if err := os.RemoveAll(present); err != nil {
		return fmt.Errorf("remove the former configuration: %w", err)
	}
	if err := os.Rename(next, present); err != nil {
		return fmt.Errorf("publish the configuration: %w", err)
	}
	return nil
}

// modeOf keeps the credential from anybody but the user of both containers.
func modeOf(name string) fs.FileMode {
	if name == config.JolokiaProperties {
		return 0o600
	}
	return 0o640
}

// Read one file of the configuration directory.
func (f *Files) Read(name string) ([]byte, error) {
	root, err := os.OpenRoot(f.at(f.paths.Configuration))
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	defer root.Close() //nolint:errcheck // it was only read
	text, err := readRegular(root, name, maxConfigurationFile)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return text, nil
}

// Replace one file of it at once: Cassandra may read it at any moment.
func (f *Files) Replace(name string, text []byte) error {
	return publish(f.at(f.paths.Configuration, name), text, modeOf(name))
}

// lastBytes of a log are looked at for the words of a death.
const lastBytes = 64 << 10

// FatalLine is the last line of Cassandra's own log since a time that tells of an error; empty if
// there is no such log or line.
func (f *Files) FatalLine(since time.Time) string {
	root, err := os.OpenRoot(f.at(f.paths.Logs))
	if err != nil {
		return ""
	}
	defer root.Close() //nolint:errcheck // it was only read
	file, err := root.OpenFile("system.log", os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer file.Close() //nolint:errcheck // it was only read
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.ModTime().Before(since) {
		return ""
	}
	if info.Size() > lastBytes {
		if _, err := file.Seek(-lastBytes, io.SeekEnd); err != nil {
			return ""
		}
	}
	text, err := io.ReadAll(io.LimitReader(file, lastBytes))
	if err != nil {
		return ""
	}
	return fatalLine(text)
}

// fatalLine finds the last ERROR, and the message of its exception where the line has none of its
// own.
func fatalLine(log []byte) string {
	lines := strings.Split(string(bytes.TrimSpace(log)), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if !strings.HasPrefix(lines[i], "ERROR") {
			continue
		}
		line := lines[i]
		if _, message, found := strings.Cut(line, " - "); found {
			line = message
		}
		if i+1 < len(lines) && isException(lines[i+1]) {
			line = strings.TrimSpace(line + ": " + lines[i+1])
		}
		const longest = 500
		return strings.ToValidUTF8(line[:min(len(line), longest)], "")
	}
	return ""
}

// isException says whether a line begins a stack trace: "java.lang.RuntimeException: …".
func isException(line string) bool {
	class, _, _ := strings.Cut(line, ":")
	return strings.Contains(class, ".") && !strings.ContainsAny(class, " \t") &&
		(strings.HasSuffix(class, "Exception") || strings.HasSuffix(class, "Error"))
}
