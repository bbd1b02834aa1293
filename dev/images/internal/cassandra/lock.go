package cassandra

import (
	"context"

	"golang.org/x/sync/errgroup"

	"helenus.io/helenus/dev/images/internal/cache"
	"helenus.io/helenus/dev/images/internal/debian"
	"helenus.io/helenus/dev/images/internal/lock"
	"helenus.io/helenus/dev/images/internal/maven"
	"helenus.io/helenus/dev/images/internal/pypi"
)

// Lock resolves everything v is made of anew and returns its lock file.
func Lock(ctx context.Context, c *cache.Cache, v Version, architecture string) (*lock.File, error) {
	locked := &lock.File{Image: v.Image(), Architecture: architecture}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		apt, err := debian.New(c, v.Suite, architecture)
		if err != nil {
			return err
		}
		if locked.Debian, err = apt.Resolve(ctx, packages, drop); err != nil {
			return err
		}
		locked.Java, err = apt.Exactly(ctx, javaPackages(v.Java))
		return err
	})
	group.Go(func() error {
		mvn, err := maven.New(c)
		if err != nil {
			return err
		}
		if locked.Maven, err = mvn.Resolve(ctx, v.jar(), keepArtifact(architecture)); err != nil {
			return err
		}
		natives, err := mvn.Lock(ctx, v.natives(architecture))
		locked.Maven = append(locked.Maven, natives...)
		return err
	})
	group.Go(func() error {
		pip, err := pypi.New(c, v.Python, architecture)
		if err != nil {
			return err
		}
		locked.Python, err = pip.Resolve(ctx, v.Requirements)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return locked, nil
}
