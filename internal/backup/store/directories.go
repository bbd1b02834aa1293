package store

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/minio/minio-go/v7"
)

// Directories implements Store.
func (s *S3) Directories(ctx context.Context) (out []string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for info := range s.core.ListObjectsIter(ctx, s.bucket, minio.ListObjectsOptions{Prefix: s.prefix}) {
		if info.Err != nil {
			return nil, s.failed("list", "", info.Err)
		}
		if name, is := strings.CutSuffix(info.Key, "/"); is {
			out = append(out, strings.TrimPrefix(name, s.prefix))
		}
	}
	return out, s.failed("list", "", ctx.Err())
}

// Directories implements Store.
func (s *Azure) Directories(ctx context.Context) (out []string, err error) {
	pages := s.container.NewListBlobsHierarchyPager("/", &container.ListBlobsHierarchyOptions{Prefix: &s.prefix})
	for pages.More() {
		asking, cancel := limited(ctx, 0)
		page, err := pages.NextPage(asking)
		cancel()
		if err != nil {
			return nil, s.failed("list", "", err)
		}
		for _, p := range page.Segment.BlobPrefixes {
			if p.Name != nil {
				out = append(out, strings.TrimSuffix(strings.TrimPrefix(*p.Name, s.prefix), "/"))
			}
		}
	}
	return out, nil
}

// Directories implements Store.
func (s *GCS) Directories(ctx context.Context) (out []string, err error) {
	query := url.Values{"prefix": {s.prefix}, "delimiter": {"/"}, "fields": {"prefixes,nextPageToken"}}
	for {
		var page struct {
			Prefixes      []string `json:"prefixes"`
			NextPageToken string   `json:"nextPageToken"`
		}
		q := gcsRequest{method: http.MethodGet, path: s.path() + "?" + query.Encode()}
		if err := s.client.ask(ctx, q, &page); err != nil {
			return nil, s.failed("list", "", err)
		}
		for _, p := range page.Prefixes {
			out = append(out, strings.TrimSuffix(strings.TrimPrefix(p, s.prefix), "/"))
		}
		if page.NextPageToken == "" {
			return out, nil
		}
		query.Set("pageToken", page.NextPageToken)
	}
}

// Directories implements Store.
func (d Directory) Directories(context.Context) (out []string, err error) {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return nil, fmt.Errorf("list directories: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, e.Name())
		}
	}
	return out, nil
}
