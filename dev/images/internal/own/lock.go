package own

import (
	"context"
	"maps"
	"slices"

	"helenus.io/helenus/dev/images/internal/lock"
	"helenus.io/helenus/dev/images/internal/maven"
)

// AnyArchitecture is what the lock files of own images say: jars run anywhere.
const AnyArchitecture = "any"

// Lock finds the hashes of the jars of i.
func Lock(ctx context.Context, mvn *maven.Maven, i Image) (*lock.File, error) {
	var coordinates []lock.Coordinates
	for _, path := range slices.Sorted(maps.Keys(i.Jars)) {
		coordinates = append(coordinates, i.Jars[path])
	}
	artifacts, err := mvn.Lock(ctx, coordinates)
	if err != nil {
		return nil, err
	}
	return &lock.File{Image: i.Name, Architecture: AnyArchitecture, Maven: artifacts}, nil
}
