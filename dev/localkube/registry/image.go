package registry

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// PushOwn makes the images that every cluster has, from static programs, and
// puts them into the registry.
func PushOwn(ctx context.Context, address, pause, busybox string) error {
	image, err := staticImage("/pause", pause, nil, v1.Config{Entrypoint: []string{"/pause"}, User: "65535:65535"})
	if err != nil {
		return err
	}
	if _, err := Push(ctx, address, PauseImage, image); err != nil {
		return err
	}
	image, err = staticImage("/bin/busybox", busybox, applets, v1.Config{
		Cmd: []string{"sh"}, Env: []string{"PATH=/bin"},
	})
	if err != nil {
		return err
	}
	_, err = Push(ctx, address, BusyboxImage, image)
	return err
}

// applets are the names by which busybox is called in its image.
var applets = []string{
	"awk", "cat", "chmod", "chown", "cp", "date", "dd", "df", "du", "echo", "env", "false", "find", "free",
	"grep", "head", "hostname", "id", "ip", "kill", "ln", "ls", "mkdir", "mount", "mv", "nc", "netstat",
	"nslookup", "ping", "printf", "ps", "pwd", "rm", "rmdir", "sed", "seq", "sh", "sleep", "sort", "stat",
	"sync", "tail", "tar", "tee", "test", "top", "touch", "tr", "true", "uname", "vi", "wc", "wget", "which", "xargs",
}

// staticImage is an image of one static program at a path, with links to it in
// /bin. Equal programs give equal images.
func staticImage(path, program string, links []string, config v1.Config) (v1.Image, error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("make image: %w", err)
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	epoch := time.Unix(0, 0).UTC()
	write := func(h *tar.Header, content []byte) error {
		h.ModTime, h.Size = epoch, int64(len(content))
		if err := w.WriteHeader(h); err != nil {
			return fmt.Errorf("make image: %w", err)
		}
		if _, err := w.Write(content); err != nil {
			return fmt.Errorf("make image: %w", err)
		}
		return nil
	}
	for _, dir := range []string{"bin/", "etc/", "tmp/"} {
		mode := int64(0o755)
		if dir == "tmp/" {
			mode = 0o1777
		}
		if err := write(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: mode}, nil); err != nil {
			return nil, err
		}
	}
	if err := write(&tar.Header{Typeflag: tar.TypeReg, Name: path[1:], Mode: 0o755}, content); err != nil {
		return nil, err
	}
	for _, link := range links {
		if err := write(&tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + link, Linkname: path, Mode: 0o777},
			nil); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("make image: %w", err)
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(layer.Bytes())), nil
	})
	if err != nil {
		return nil, fmt.Errorf("make image: %w", err)
	}
	image, err := mutate.AppendLayers(empty.Image, l)
	if err != nil {
		return nil, fmt.Errorf("make image: %w", err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("make image: %w", err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", runtime.GOARCH, config
	image, err = mutate.ConfigFile(image, file)
	if err != nil {
		return nil, fmt.Errorf("make image: %w", err)
	}
	return image, nil
}
