package pod

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/internal/agent/journal"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/node"
)

const nodeName = "orders-dc1-r1-0"

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Cassandra has the user of the agent, and whoever is in its JVM may put anything below /helenus.
func TestTheBaseIsReadWithinItsBounds(t *testing.T) {
	for name, c := range map[string]struct {
		base  string
		spoil func(t *testing.T, root, base string) error
		words string
	}{
		"as it is": {"/helenus/base/i1", nil, ""},
		"a link to what the agent alone has": {"/helenus/base/i1", func(_ *testing.T, root, base string) error {
			return os.Symlink(filepath.Join(root, "secret/token"), filepath.Join(base, "a.properties"))
		}, "a.properties is not a regular file"},
		"the base is a link out": {"/helenus/base/i2", func(_ *testing.T, root, base string) error {
			return os.Symlink(filepath.Join(root, "secret"), filepath.Join(filepath.Dir(base), "i2"))
		}, "path escapes from parent"},
		"a pipe": {"/helenus/base/i1", func(_ *testing.T, _, base string) error {
			return syscall.Mkfifo(filepath.Join(base, "a.properties"), 0o600)
		}, "a.properties is not a regular file"},
		"a large file": {"/helenus/base/i1", func(_ *testing.T, _, base string) error {
			return os.WriteFile(filepath.Join(base, "a.properties"), make([]byte, maxConfigurationFile+1), 0o600)
		}, "a.properties has more than"},
		"another directory": {"/secret", nil, "is not below /helenus/base"},
		"one above":         {"/helenus/base/../../secret", nil, "is not below /helenus/base"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write(t, filepath.Join(root, "secret/token"), "token")
			write(t, filepath.Join(root, "helenus/base/i1/cassandra.yaml"), "image")
			if c.spoil != nil {
				if err := c.spoil(t, root, filepath.Join(root, "helenus/base/i1")); err != nil {
					t.Fatal(err)
				}
			}
			f := NewFiles(root, Paths{Configuration: "/conf"}, "secret", Ports{})
			_, read := f.Base(c.base)
			install := f.Install(c.base, nil)
			for _, err := range []error{read, install} {
				if (err == nil) != (c.words == "") || err != nil && !strings.Contains(err.Error(), c.words) {
					t.Errorf("got %v, want %q", err, c.words)
				}
			}
		})
	}
}

func TestFilesRenderOverTheImagesOwn(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "helenus/base/i1/cassandra.yaml"), "image")
	write(t, filepath.Join(root, "helenus/base/i1/triggers/README"), "kept")
	f := NewFiles(root, Paths{Configuration: "/conf", Library: "/lib", Data: "/data", Logs: "/logs"}, "secret",
		Ports{Jolokia: 7777, Metrics: 7783})

	base, err := f.Base("/helenus/base/i1")
	if err != nil || string(base["triggers/README"]) != "kept" || len(base) != 2 {
		t.Fatalf("base %v, %v", base, err)
	}
	for _, text := range []string{"first", "second"} {
		if err := f.Install("/helenus/base/i1", config.Files{"cassandra.yaml": []byte(text),
			config.JolokiaProperties: []byte("password")}); err != nil {
			t.Fatal(err)
		}
		if got, err := f.Read("cassandra.yaml"); err != nil || string(got) != text {
			t.Errorf("cassandra.yaml %q, %v; want %q", got, err, text)
		}
	}
	if got, err := f.Read("triggers/README"); err != nil || string(got) != "kept" {
		t.Errorf("the image's own file: %q, %v", got, err)
	}
	info, err := os.Stat(filepath.Join(root, "conf", config.JolokiaProperties))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("credential: %v, %v", info.Mode(), err)
	}
	if err := f.Replace("cassandra.yaml", []byte("third")); err != nil {
		t.Fatal(err)
	}
	if got, _ := f.Read("cassandra.yaml"); string(got) != "third" {
		t.Errorf("replaced: %q", got)
	}
	got, err := os.ReadFile(filepath.Join(root, "helenus/base/i1/cassandra.yaml"))
	if err != nil || string(got) != "image" {
		t.Errorf("the image's file was changed: %q, %v", got, err)
	}
	if _, err := f.Base(""); err == nil {
		t.Error("read a base that init has not made")
	}
}

func TestCompleteNamesWhatIsThere(t *testing.T) {
	root := t.TempDir()
	f := NewFiles(root, DefaultPaths(true), "secret", Ports{Jolokia: 7777, Metrics: 7783})
	n := config.Node{Address: netip.MustParseAddr("fd00::1")}
	if err := f.Complete(&n); err != nil || n.Metrics != nil {
		t.Errorf("metrics %+v without their jar, %v", n.Metrics, err)
	}
	write(t, filepath.Join(root, "helenus/lib", MetricsJar), "jar")
	if err := f.Complete(&n); err != nil || n.Metrics == nil || n.Metrics.Port != 7783 {
		t.Errorf("metrics %+v, %v", n.Metrics, err)
	}
	if n.Directories.Commitlog != "/var/lib/cassandra-commitlog/commitlog" ||
		n.Directories.Data != "/var/lib/cassandra/data" || n.Jolokia.Password != "secret" {
		t.Errorf("directories %+v, Jolokia %+v", n.Directories, n.Jolokia)
	}
}

func TestFatalLine(t *testing.T) {
	for name, c := range map[string]struct{ log, want string }{
		"none": {"INFO  [main] 2026-03-01 Server.java:1 - Hello\n", ""},
		"message and exception": {
			"ERROR [main] 2026-03-01 12:00:00,000 CassandraDaemon.java:900 - Exception encountered during startup\n" +
				"java.lang.RuntimeException: A node with address /10.0.0.1:7000 already exists, cancelling " +
				"join.\n\tat x.y(Z.java:1)\n",
			"Exception encountered during startup: java.lang.RuntimeException: A node with address /10.0.0.1:7000 " +
				"already exists, cancelling join.",
		},
		"the last of several": {"ERROR [a] 1 X.java:1 - first\nINFO  [b] 2 X.java:1 - between\nERROR [c] 3 X.java:1 " +
			"- second\nINFO  [d] 4 X.java:1 - after\n", "second"},
		"cut in the middle": {"tail of a line\nERROR [c] 3 X.java:1 - words", "words"},
	} {
		if got := fatalLine([]byte(c.log)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	root := t.TempDir()
	f := NewFiles(root, Paths{Logs: "/logs"}, "", Ports{})
	if got := f.FatalLine(time.Now().Add(-time.Hour)); got != "" {
		t.Errorf("without a log: %q", got)
	}
	write(t, filepath.Join(root, "logs/system.log"),
		strings.Repeat("INFO  [x] 1 X.java:1 - filler\n", 10_000)+"ERROR [c] 3 X.java:1 - words\n")
	if got := f.FatalLine(time.Now().Add(-time.Hour)); got != "words" {
		t.Errorf("of a long log: %q", got)
	}
	if got := f.FatalLine(time.Now().Add(time.Hour)); got != "" {
		t.Errorf("of a log from before: %q", got)
	}
}

func FuzzFatalLine(f *testing.F) {
	f.Add([]byte("ERROR [main] - x\njava.lang.Error: y"))
	f.Fuzz(func(t *testing.T, log []byte) {
		if got := fatalLine(log); strings.ContainsRune(got, '\n') || len(got) > 600 {
			t.Errorf("%q", got)
		}
	})
}

func TestMarksAndInspection(t *testing.T) {
	data, commitlog, scratch := t.TempDir(), t.TempDir(), t.TempDir()
	d := NewDisk([]Volume{{"data", data}, {"commitlog", commitlog}, {"scratch", scratch}}, time.Now)
	names := []string{"data", "commitlog", "scratch"}
	if found := d.Inspect(t.Context()); found.Problem != "" || found.HasData || len(found.Volumes) != 3 ||
		found.Volumes[0].Marker != nil {
		t.Fatalf("new volumes: %+v", found)
	}
	if err := d.Mark(names, "earlier", nodeName, ""); err != nil {
		t.Fatal(err)
	}
	if err := d.Mark(names, "uid", nodeName, ""); err == nil {
		t.Error("marked volumes of another cluster")
	}
	if err := d.Mark(names, "uid", "another", "earlier"); err == nil {
		t.Error("adopted volumes of another node")
	}
	for range 2 { // the second time it is done already
		if err := d.Mark(names, "uid", nodeName, "earlier"); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range d.Inspect(t.Context()).Volumes {
		if v.Marker == nil || *v.Marker != (node.Marker{ClusterUID: types.UID("uid"), Node: nodeName, Volume: v.Name}) {
			t.Errorf("marker of %s: %+v", v.Name, v.Marker)
		}
	}
	write(t, filepath.Join(commitlog, journal.MarkerPath), "broken")
	if found := d.Inspect(t.Context()); found.Problem == "" {
		t.Error("a broken marker is no problem")
	}
	if err := d.Mark([]string{"other"}, "uid", nodeName, ""); err == nil {
		t.Error("marked a volume that is not there")
	}
	if found := NewDisk([]Volume{{"data", filepath.Join(data, "missing")}},
		time.Now).Inspect(t.Context()); found.Problem == "" {
		t.Error("a volume that is not mounted is no problem")
	}
}

// A commit log counts where it lies: on its own volume if there is one, else on that of the data.
func TestACommitLogIsFoundWhereItLies(t *testing.T) {
	segment := func(directory string) string {
		return filepath.Join(directory, "commitlog", "CommitLog-7-1700000000000.log")
	}
	data, commitlog, scratch := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, segment(commitlog), "x")
	found := NewDisk([]Volume{{"data", data}, {"commitlog", commitlog}, {"scratch", scratch}},
		time.Now).Inspect(t.Context())
	if found.Problem != "" || found.HasData || found.Volumes[0].HasData || !found.Volumes[1].HasData ||
		found.Volumes[2].HasData {
		t.Errorf("on its own volume: %+v", found)
	}
	write(t, segment(data), "x")
	if found := NewDisk([]Volume{{"data", data}, {"scratch", scratch}}, time.Now).Inspect(t.Context()); !found.HasData {
		t.Errorf("beside the data: %+v", found)
	}
}

func TestJournalOfAVolume(t *testing.T) {
	directory := t.TempDir()
	volume, err := journal.OpenVolume(directory)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = volume.Close() }()
	j := NewJournal(volume)
	if err := j.Put(node.Memory{}); err == nil {
		t.Error("wrote a journal that was not read")
	}
	if m, err := j.Load(); err != nil || m.Node != "" {
		t.Fatalf("new journal: %+v, %v", m, err)
	}
	opened := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	if err := j.Put(node.Memory{ClusterUID: "uid", Node: nodeName, TrafficOpenedAt: &opened}); err != nil {
		t.Fatal(err)
	}
	again := NewJournal(volume)
	if m, err := again.Load(); err != nil || m.TrafficOpenedAt == nil || !m.TrafficOpenedAt.Equal(opened) {
		t.Errorf("read again: %+v, %v", m, err)
	}
	write(t, filepath.Join(directory, journal.Path), "{}")
	broken := NewJournal(volume)
	if _, err := broken.Load(); err == nil {
		t.Error("read a broken journal")
	}
	if err := broken.Put(node.Memory{}); err == nil {
		t.Error("wrote over a broken journal")
	}
}

func TestInstall(t *testing.T) {
	root := t.TempDir()
	i := Installation{
		Init: filepath.Join(root, "image/helenus-init"), InitTarget: filepath.Join(root, "shared/bin/helenus-init"),
		Lib: filepath.Join(root, "image"), Library: filepath.Join(root, "shared/lib"),
	}
	if err := Install(i); err == nil {
		t.Error("installed an image without Jolokia")
	}
	write(t, filepath.Join(root, "image/jolokia-agent-jvm-2.3.0-javaagent.jar"), "jolokia")
	write(t, i.Init, "init")
	for range 2 {
		if err := Install(i); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{"shared/lib/jolokia.jar": "jolokia", "shared/bin/helenus-init": "init"} {
		if got, err := os.ReadFile(filepath.Join(root, path)); err != nil || string(got) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "shared/lib", MetricsJar)); err == nil {
		t.Error("installed metrics that the image does not have")
	}
}

func TestInstallReplacesABinaryThatRuns(t *testing.T) {
	dir := t.TempDir()
	dst := filepath.Join(dir, "bin", "helenus-init")
	if err := os.Mkdir(filepath.Dir(dst), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := copyFile("/bin/cat", dst, 0o555); err != nil {
		t.Fatal(err)
	}
	running := exec.Command(dst)
	in, err := running.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	if err := copyFile(os.Args[0], dst, 0o555); err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	if err := running.Wait(); err != nil {
		t.Errorf("the running binary ended with %v", err)
	}
	want, err := os.Stat(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.Stat(dst)
	if err != nil || got.Size() != want.Size() || got.Mode().Perm() != 0o555 {
		t.Errorf("installed %v, %v", got, err)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "bin")); err != nil || len(entries) != 1 {
		t.Errorf("left in the directory: %v, %v", entries, err)
	}
	if err := copyFile(filepath.Join(dir, "none"), dst, 0o555); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing source: %v", err)
	}
	if now, err := os.Stat(dst); err != nil || now.Size() != want.Size() {
		t.Errorf("a failed install changed the target: %v, %v", now, err)
	}
}

func TestPasswordOutlivesTheAgent(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "private")
	first, err := Password(directory)
	if err != nil || len(first) < 20 {
		t.Fatalf("%q, %v", first, err)
	}
	if again, err := Password(directory); err != nil || again != first {
		t.Errorf("%q, %v; want %q", again, err, first)
	}
	if other, err := Password(filepath.Join(t.TempDir(), "private")); err != nil || other == first {
		t.Errorf("another pod has the same password: %v", err)
	}
}

// The user's own files go over the image's, and what Helenus renders over both.
func TestGivenFiles(t *testing.T) {
	root := t.TempDir()
	put := func(name, text string) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"cassandra.yaml", "logback.xml", "other.properties"} {
		put("helenus/base/i1/"+name, "image's "+name)
	}
	put("given/..data/logback.xml", "user's logback.xml")
	if err := os.Symlink("..data/logback.xml", filepath.Join(root, "given/logback.xml")); err != nil {
		t.Fatal(err)
	}
	put("given/extra.xml", "user's extra.xml")
	f := NewFiles(root, Paths{Configuration: "/conf", Given: "/given"}, "", Ports{})
	base, err := f.Base("/helenus/base/i1")
	if err != nil {
		t.Fatal(err)
	}
	if string(base["logback.xml"]) != "user's logback.xml" ||
		string(base["cassandra.yaml"]) != "image's cassandra.yaml" || len(base) != 4 {
		t.Errorf("base %q", base)
	}
	if err := f.Install("/helenus/base/i1", config.Files{"cassandra.yaml": []byte("rendered"),
		"logback.xml": []byte("rendered from the user's")}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"cassandra.yaml": "rendered", "logback.xml": "rendered from the user's", "extra.xml": "user's extra.xml",
		"other.properties": "image's other.properties",
	} {
		if got, err := os.ReadFile(filepath.Join(root, "conf", name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v; want %q", name, got, err, want)
		}
	}
	put("given/cassandra.yaml", "user's")
	const words = "node.configFiles: the ConfigMap has cassandra.yaml, which Helenus renders itself: take it out; " +
		"give settings in node.cassandraYaml"
	if _, err := f.Base("/helenus/base/i1"); err == nil || err.Error() != words {
		t.Errorf("got %v", err)
	}
}
