package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
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
// read, and another one is written. Each says in how many nanoseconds, and how many bytes.
const (
	sstables = `cd ` + layout.DataDir + `/data/` + scene.Keyspace + `
files=$(find . -name snapshots -prune -o -type f -size +1M -print)
`
	dropFiles = sstables + `for f in $files; do dd if=$f iflag=nocache count=0; done 2>/dev/null
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

// plain are clients of a bucket that have nothing to do but to put and get, one in the network of
// each node.
func plain(ctx context.Context, ring *scene.Ring, bucket *scene.Bucket) (map[string]*minio.Core, error) {
	out := map[string]*minio.Core{}
	for _, node := range ring.NodeNames(ctx) {
		dialer, err := ring.Beside(ctx, node)
		if err != nil {
			return nil, err
		}
		if out[node], err = minio.NewCore(bucket.Address, &minio.Options{Region: "eu-1",
			Creds:     credentials.NewStaticV4("id", "key", ""),
			Transport: &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: downloads}}); err != nil {
			return nil, fmt.Errorf("open a plain client: %w", err)
		}
	}
	return out, nil
}

// zeros are read without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// putPlainly puts objects as large as the files of each node, as many at a time as agents do, and
// deletes them again.
func putPlainly(ctx context.Context, ring *scene.Ring, bucket *scene.Bucket, of map[string][]format.File) (float64,
	error) {
	clients, err := plain(ctx, ring, bucket)
	if err != nil {
		return 0, err
	}
	key := func(node string, i int) string { return fmt.Sprintf("plain/%s/%d", node, i) }
	rate, err := passing(ctx, of, uploads, func(ctx context.Context, node string, i int, f format.File) error {
		_, err := clients[node].Client.PutObject(ctx, scene.BucketName, key(node, i), io.LimitReader(zeros{}, f.Size),
			f.Size, minio.PutObjectOptions{PartSize: partSize, NumThreads: 1, DisableContentSha256: true})
		return err
	})
	for node, files := range of {
		for i := range files {
			if gone := bucket.Delete(ctx, key(node, i)); err == nil {
				err = gone
			}
		}
	}
	return rate, err
}

// getPlainly gets the files of each node out of a store, as many at a time as agents do.
func getPlainly(ctx context.Context, ring *scene.Ring, bucket *scene.Bucket, of map[string][]format.File) (float64,
	error) {
	clients, err := plain(ctx, ring, bucket)
	if err != nil {
		return 0, err
	}
	return passing(ctx, of, downloads, func(ctx context.Context, node string, _ int, f format.File) error {
		content, _, _, err := clients[node].GetObject(ctx, scene.BucketName,
			format.BlobKey(string(ring.UID), f.BlobName()), minio.GetObjectOptions{})
		if err != nil {
			return err
		}
		if _, err = io.Copy(io.Discard, content); err == nil {
			err = content.Close()
		}
		return err
	})
}

// passing does something for each file of each node, so many at a time for each node.
func passing(ctx context.Context, of map[string][]format.File, atOnce int,
	do func(ctx context.Context, node string, i int, f format.File) error) (float64, error) {
	var nodes []string
	for node := range of {
		nodes = append(nodes, node)
	}
	return eachNode(ctx, nodes, func(ctx context.Context, node string) (bytes int64, _ time.Duration, _ error) {
		began := time.Now()
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(atOnce)
		for i, f := range of[node] {
			bytes += f.Size
			group.Go(func() error { return do(ctx, node, i, f) })
		}
		err := group.Wait()
		return bytes, time.Since(began), err
	})
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

// isBlob says that a request gets the content of a file.
func isBlob(a scene.Asked) bool {
	return a.Method == http.MethodGet && strings.Contains(a.Key, "/blobs/")
}
