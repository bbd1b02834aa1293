package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// environment makes a small node that starts fast: it is alone, so there is no
// gossip to wait for.
var environment = []string{
	"CASSANDRA_CONF=" + confDirectory,
	"CASSANDRA_LISTEN_ADDRESS=127.0.0.1",
	"CASSANDRA_CLUSTER_NAME=check",
	"CASSANDRA_NUM_TOKENS=4",
	"MAX_HEAP_SIZE=512m",
	"HEAP_NEWSIZE=128m",
	"JVM_EXTRA_OPTS=-XX:-AlwaysPreTouch -XX:TieredStopAtLevel=1 -Dcassandra.skip_wait_for_gossip_to_settle=0 " +
		"-Dcassandra.ring_delay_ms=1000",
}

// Report is what was measured.
type Report struct {
	// Unpacked is the size of all files, in bytes.
	Unpacked int64
	// CQL is how long it took from the start of the process to the first answer.
	CQL time.Duration
	// Stop is how long the process took to end after SIGTERM.
	Stop time.Duration
}

// Image starts the image in file and uses it: CQL writes and reads, nodetool and
// cqlsh. The version is what it must say it is. Work is an empty directory.
func Image(ctx context.Context, file, version, work string) (report *Report, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("checking an image needs root, for namespaces and mounts: run it by sudo")
	}
	if _, err := exec.LookPath("nsenter"); err != nil {
		return nil, fmt.Errorf("nsenter is missing: install the package util-linux: %w", err)
	}
	img, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		return nil, fmt.Errorf("open image: %w", err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("open image: %w", err)
	}
	root := filepath.Join(work, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		return nil, err
	}
	if err := unpack(img, root); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(work, "log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\nlast output of the container:\n%s", err, tail(log.Name(), 30))
		}
	}()
	report = &Report{Unpacked: size(root)}
	return report, use(ctx, root, config.Config, version, log, report)
}

func use(ctx context.Context, root string, config v1.Config, version string, log *os.File, report *Report) error {
	begin := time.Now()
	c, err := start(ctx, root, config, environment, log)
	if err != nil {
		return err
	}
	defer c.kill()
	session, err := c.session(ctx)
	if err != nil {
		return err
	}
	report.CQL = time.Since(begin)
	err = readAndWrite(ctx, session, version)
	session.Close()
	if err != nil {
		return err
	}
	for _, t := range []struct {
		want    string
		command []string
	}{
		{version, []string{"cassandra", "-v"}},
		{"UN  127.0.0.1", []string{"nodetool", "status"}},
		{version, []string{"nodetool", "version"}},
		{version, []string{"cqlsh", "-e", "SELECT release_version FROM system.local"}},
		{"CREATE TABLE check.rows", []string{"cqlsh", "-e", "DESCRIBE KEYSPACE check"}},
	} {
		out, err := c.run(ctx, t.command...)
		if err != nil {
			return err
		}
		if !strings.Contains(out, t.want) {
			return fmt.Errorf("%s: want %q in the output, got:\n%s", strings.Join(t.command, " "), t.want, out)
		}
	}
	begin = time.Now()
	code, err := c.stop(ctx)
	if err != nil {
		return err
	}
	report.Stop = time.Since(begin)
	if code != 143 {
		return fmt.Errorf("stop container: exit code %d, want 143 (ended by SIGTERM)", code)
	}
	return nil
}

// session connects as soon as the node answers.
func (c *container) session(ctx context.Context) (*gocql.Session, error) {
	cluster := gocql.NewCluster("127.0.0.1")
	cluster.Dialer = c
	cluster.DisableInitialHostLookup = true
	cluster.Consistency = gocql.One
	cluster.Timeout, cluster.ConnectTimeout = 20*time.Second, 5*time.Second
	cluster.Logger = gocql.NewLogger(gocql.LogLevelNone)
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		session, err := cluster.CreateSession()
		if err == nil {
			return session, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("connect by CQL: %w: last: %w", ctx.Err(), err)
		case end := <-c.done:
			return nil, fmt.Errorf("connect by CQL: the container ended: %w", end)
		case <-ticker.C:
		}
	}
}

func readAndWrite(ctx context.Context, session *gocql.Session, version string) error {
	var release string
	if err := session.Query("SELECT release_version FROM system.local").ScanContext(ctx, &release); err != nil {
		return fmt.Errorf("read version by CQL: %w", err)
	}
	if release != version {
		return fmt.Errorf("the node is version %s, want %s", release, version)
	}
	for _, statement := range []string{
		"CREATE KEYSPACE check WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
		"CREATE TABLE check.rows (id int PRIMARY KEY, value text)",
		"INSERT INTO check.rows (id, value) VALUES (1, 'written')",
	} {
		if err := session.Query(statement).ExecContext(ctx); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	var value string
	if err := session.Query("SELECT value FROM check.rows WHERE id = 1").ScanContext(ctx, &value); err != nil {
		return fmt.Errorf("read row by CQL: %w", err)
	}
	if value != "written" {
		return fmt.Errorf("read %q by CQL, wrote %q", value, "written")
	}
	return nil
}

// size is that of all files below root, in bytes.
func size(root string) int64 {
	var total int64
	_ = filepath.Walk(root, func(_ string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
		return nil
	})
	return total
}

// tail is the end of a text file, without the ends of very long lines.
func tail(file string, lines int) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	all = all[max(0, len(all)-lines):]
	for i, line := range all {
		all[i] = line[:min(len(line), 300)]
	}
	return strings.Join(all, "\n")
}
