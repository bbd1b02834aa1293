package cassandra

import (
	"context"
	"fmt"
	"strings"

	"helenus.io/helenus/dev/images/internal/cache"
	"helenus.io/helenus/dev/images/internal/layer"
	"helenus.io/helenus/dev/images/internal/lock"
	"helenus.io/helenus/dev/images/internal/maven"
	"helenus.io/helenus/dev/images/internal/settings"
)

// checkSettings fails if a cassandra.yaml in tree has a setting that the
// Cassandra in jar does not know: it would not start with it.
func checkSettings(tree layer.Tree, jar string) error {
	known, err := settings.Read(jar)
	if err != nil {
		return err
	}
	for _, name := range []string{"cassandra.yaml", "cassandra_latest.yaml"} {
		entry, ok := tree[conf+"/"+name]
		if !ok {
			continue
		}
		if unknown := settings.Unknown(entry.Content, known); len(unknown) > 0 {
			return fmt.Errorf("%s: this version does not know %s", name, strings.Join(unknown, ", "))
		}
	}
	return nil
}

// Settings reads what cassandra.yaml may contain from the jar of v, which is
// downloaded if it is not in the cache.
func Settings(ctx context.Context, c *cache.Cache, v Version, locked *lock.File) ([]settings.Setting, error) {
	for _, a := range locked.Maven {
		if a.Name != v.jar().String() {
			continue
		}
		mvn, err := maven.New(c)
		if err != nil {
			return nil, err
		}
		if err := mvn.Fetch(ctx, []lock.Artifact{a}); err != nil {
			return nil, err
		}
		return settings.Read(c.Download(a.SHA256))
	}
	return nil, fmt.Errorf("the lock file of %s does not list %s", v.Image(), v.jar())
}
