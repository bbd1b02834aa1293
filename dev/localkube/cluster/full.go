package cluster

import (
	"context"
	"errors"

	"helenus.io/helenus/dev/localkube/step"
)

func (c *Cluster) upFull(ctx context.Context, o Options, steps *step.Reporter) error {
	return errors.New("not in this revision")
}
