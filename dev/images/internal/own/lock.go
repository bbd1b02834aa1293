package own

import (
	"context"

	"helenus.io/helenus/dev/images/internal/lock"
	"helenus.io/helenus/dev/images/internal/maven"
)

// AnyArchitecture is what the lock files of own images say: jars run anywhere.
const AnyArchitecture = "any"

// Lock finds the hashes of the jars of i.
func Lock(ctx context.Context, mvn *maven.Maven, i Image) (*lock.File, error) {
	artifacts, err := mvn.Lock(ctx, i.Artifacts())
	if err != nil {
		return nil, err
	}
	return &lock.File{Image: i.Name, Architecture: AnyArchitecture, Maven: artifacts}, nil
}
