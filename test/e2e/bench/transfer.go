package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/test/e2e/scene"
)

const (
	// uploads and downloads are how many files an agent sends and fetches at a time, and partSize
	// what it sends by one request.
	uploads, downloads = 2, 8
	partSize           = 8 << 20
)

// transfer is how many bytes pass in a second for each of the nodes of a ring at the same time: by
// their agents, between their disks and dd, and between a plain client and the store.
type transfer struct {
	agents, disks, clients float64
	// waiting is the share of their time in which agents waited for the store.
	waiting float64
}

// share that agents reach of what disks and the store allow.
func (t transfer) share() float64 { return t.agents / min(t.disks, t.clients) }

// inTurn is the same where the disk waits for the store, and the store for the disk: as it is where
// nodes and store share the processors.
func (t transfer) inTurn() float64 { return t.agents * (1/t.disks + 1/t.clients) }

// eachNode has all nodes do something at the same time, and says how many bytes a second each has
// moved, by the bytes and the time that do says.
func eachNode(ctx context.Context, nodes []string, do func(ctx context.Context, node string) (int64, time.Duration,
	error)) (float64, error) {
	var mutex sync.Mutex
	var bytes int64
	var took time.Duration
	group, ctx := errgroup.WithContext(ctx)
	for _, node := range nodes {
		group.Go(func() error {
			b, d, err := do(ctx, node)
			mutex.Lock()
			defer mutex.Unlock()
			bytes, took = bytes+b, took+d
			return err
		})
	}
	err := group.Wait()
	return float64(bytes) / took.Seconds(), err
}

// What dd does: the files of the keyspace with more than 1 MiB are dropped from the page cache and
// read, and another one is written. What the agent knows of them goes, too. Each says in how many
// nanoseconds, and how many bytes.
const (
	sstables = `cd ` + layout.DataDir + `/data/` + scene.Keyspace + `
files=$(find . -name snapshots -prune -o -type f -size +1M -print)
`
	dropFiles = sstables + `rm -f ` + layout.DataDir + `/.helenus/hashes
for f in $files; do dd if=$f iflag=nocache count=0; done 2>/dev/null
`
	readFiles = dropFiles + `began=$(date +%s%N)
for f in $files; do dd if=$f of=/dev/null bs=1M; done 2>/dev/null
echo $(($(date +%s%N) - began)) $(cat $files | wc -c)`
	writeFile = `cd ` + layout.DataDir + `/data
began=$(date +%s%N)
dd if=/dev/zero of=bench bs=1M count=$1 conv=fsync 2>/dev/null
echo $(($(date +%s%N) - began)) $(($1 << 20))
rm bench`
)

// dd runs one of these on all nodes.
func dd(ctx context.Context, ring *scene.Ring, script string, mebibytes int64) (float64, error) {
	return eachNode(ctx, ring.NodeNames(ctx), func(ctx context.Context, node string) (int64, time.Duration, error) {
		out, err := ring.Run(ctx, node, "sh", "-c", script, "sh", strconv.FormatInt(mebibytes, 10))
		if err != nil {
			return 0, 0, err
		}
		var took time.Duration
		var bytes int64
		if _, err := fmt.Sscan(out, &took, &bytes); err != nil {
			return 0, 0, fmt.Errorf("read what dd did on %s, %q: %w", node, out, err)
		}
		return bytes, took, nil
	})
}

// plainly is what a plain client does, in a process of its own in the network of a node: it has
// nothing to do but to put or to get objects.
type plainly struct {
	Address string
	AtOnce  int
	Put     bool
	Keys    []string
	Sizes   []int64
}

// plain is the command that does what it reads, and says in how many nanoseconds.
func plain() *cobra.Command {
	return &cobra.Command{Use: "plain", Hidden: true, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		var p plainly
		if err := json.NewDecoder(c.InOrStdin()).Decode(&p); err != nil {
			return fmt.Errorf("read what to do: %w", err)
		}
		took, err := p.run(c.Context())
		if err == nil {
			_, err = fmt.Fprintln(c.OutOrStdout(), took.Nanoseconds())
		}
		return err
	}}
}

func (p plainly) run(ctx context.Context) (time.Duration, error) {
	client, err := minio.NewCore(p.Address, &minio.Options{Region: "eu-1",
		Creds: credentials.NewStaticV4("id", "key", ""), Transport: &http.Transport{MaxIdleConnsPerHost: downloads}})
	if err != nil {
		return 0, fmt.Errorf("open a plain client: %w", err)
	}
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(p.AtOnce)
	for i, key := range p.Keys {
		group.Go(func() error {
			if p.Put {
				_, err := client.Client.PutObject(ctx, scene.BucketName, key, io.LimitReader(zeros{}, p.Sizes[i]),
					p.Sizes[i], minio.PutObjectOptions{PartSize: partSize, NumThreads: 1, DisableContentSha256: true})
				return err
			}
			content, _, _, err := client.GetObject(ctx, scene.BucketName, key, minio.GetObjectOptions{})
			if err != nil {
				return err
			}
			if _, err = io.Copy(io.Discard, content); err == nil {
				err = content.Close()
			}
			return err
		})
	}
	err = group.Wait()
	return time.Since(began), err
}

// zeros are read without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// passes has a plain client in the network of each node do something, all at the same time.
func (b *bench) passes(ctx context.Context, ring *scene.Ring, of map[string]plainly) (float64, error) {
	return eachNode(ctx, slices.Collect(maps.Keys(of)), func(ctx context.Context, node string) (bytes int64,
		took time.Duration, err error) {
		var also []string
		if b.processor != "" {
			also = []string{"taskset", "--cpu-list", b.processor}
		}
		client, err := b.beside(ctx, ring, node, also...)
		if err != nil {
			return 0, 0, err
		}
		client.Args = append(client.Args, "plain")
		what, err := json.Marshal(of[node])
		if err != nil {
			return 0, 0, err
		}
		client.Stdin = strings.NewReader(string(what))
		out, err := client.Output()
		if err != nil {
			return 0, 0, fmt.Errorf("run a plain client beside %s: %w", node, err)
		}
		if _, err := fmt.Sscan(string(out), &took); err != nil {
			return 0, 0, fmt.Errorf("read what a plain client did beside %s, %q: %w", node, out, err)
		}
		for _, size := range of[node].Sizes {
			bytes += size
		}
		return bytes, took, nil
	})
}

// beside is this program in the network of a node, run by another one.
func (b *bench) beside(ctx context.Context, ring *scene.Ring, node string, by ...string) (*exec.Cmd, error) {
	pid, err := ring.Inside(ctx, node)
	if err != nil {
		return nil, err
	}
	itself, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	arguments := slices.Concat([]string{"--target", strconv.Itoa(pid), "--net"}, by, []string{itself})
	c := exec.CommandContext(ctx, "nsenter", arguments...)
	c.Stderr = b.progress
	return c, nil
}

// putPlainly puts objects as large as the files of each node, as many at a time as agents do, and
// deletes them again.
func (b *bench) putPlainly(ctx context.Context, ring *scene.Ring, bucket *scene.Bucket,
	of map[string][]format.File) (float64, error) {
	all := map[string]plainly{}
	for node, files := range of {
		p := plainly{Address: bucket.Address, AtOnce: uploads, Put: true}
		for i, f := range files {
			p.Keys, p.Sizes = append(p.Keys, fmt.Sprintf("plain/%s/%d", node, i)), append(p.Sizes, f.Size)
		}
		all[node] = p
	}
	rate, err := b.passes(ctx, ring, all)
	for _, p := range all {
		for _, key := range p.Keys {
			if gone := bucket.Delete(ctx, key); err == nil {
				err = gone
			}
		}
	}
	return rate, err
}

// getPlainly gets the files of each node out of a store, as many at a time as agents do.
func (b *bench) getPlainly(ctx context.Context, ring *scene.Ring, bucket *scene.Bucket,
	of map[string][]format.File) (float64, error) {
	all := map[string]plainly{}
	for node, files := range of {
		p := plainly{Address: bucket.Address, AtOnce: downloads}
		for _, f := range files {
			p.Keys = append(p.Keys, format.BlobKey(string(ring.UID), f.BlobName()))
			p.Sizes = append(p.Sizes, f.Size)
		}
		all[node] = p
	}
	return b.passes(ctx, ring, all)
}

// byNodes are the requests of the nodes of a ring that a bucket has got since a time.
func byNodes(ctx context.Context, ring *scene.Ring, bucket *scene.Bucket, since time.Time) map[string][]scene.Asked {
	names := map[string]string{}
	for _, n := range ring.Nodes(ctx) {
		names[n.Status.Address] = n.Name
	}
	out := map[string][]scene.Asked{}
	for _, a := range bucket.Asked(since) {
		if name := names[a.From]; name != "" {
			out[name] = append(out[name], a)
		}
	}
	return out
}

// spanOf is the time from the start of the first request to the end of the last.
func spanOf(asked []scene.Asked) span {
	var out span
	for _, a := range asked {
		if out.from.IsZero() || a.Began.Before(out.from) {
			out.from = a.Began
		}
		if a.Ended.After(out.to) {
			out.to = a.Ended
		}
	}
	return out
}

// moved is how many bytes a second agents have moved by their requests, and when.
func moved(by map[string][]scene.Asked) (rate float64, all span) {
	var bytes int64
	var took time.Duration
	var ends []scene.Asked
	for _, asked := range by {
		for _, a := range asked {
			bytes += a.Sent + a.Received
		}
		s := spanOf(asked)
		took += s.to.Sub(s.from)
		ends = append(ends, asked...)
	}
	if took == 0 {
		return 0, span{}
	}
	return float64(bytes) / took.Seconds(), spanOf(ends)
}

// waiting is the share of their time in which agents that do so much at a time wait for the store.
func waiting(by map[string][]scene.Asked, atOnce int) float64 {
	var waited, all time.Duration
	for _, asked := range by {
		for _, a := range asked {
			waited += a.Ended.Sub(a.Began)
		}
		s := spanOf(asked)
		all += s.to.Sub(s.from) * time.Duration(atOnce)
	}
	return waited.Seconds() / max(all, 1).Seconds()
}

// upToManifest are the requests until a node has put its manifest. What it does for the whole
// backup after that, it is asked for by the operator.
func upToManifest(asked []scene.Asked) []scene.Asked {
	for _, last := range asked {
		if last.Method == http.MethodPut && strings.Contains(last.Key, "/nodes/") {
			return slices.DeleteFunc(slices.Clone(asked), func(a scene.Asked) bool { return a.Began.After(last.Ended) })
		}
	}
	return asked
}

// isBlob says that a request gets the content of a file.
func isBlob(a scene.Asked) bool {
	return a.Method == http.MethodGet && strings.Contains(a.Key, "/blobs/")
}
