package execute

import (
	"context"
	"fmt"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/node"
)

const (
	// probeEvery is how often the volumes are written to, and probeAgain how soon after a first
	// error.
	probeEvery = time.Minute
	probeAgain = 10 * time.Second
	// probeLimit is how long a write of a few bytes may take.
	probeLimit = 30 * time.Second
)

// followVolumes writes to the volumes once a minute to see whether they fail.
func (a *Agent) followVolumes(ctx context.Context) {
	for ctx.Err() == nil {
		a.ProbeVolumes(ctx)
		a.mu.Lock()
		pause := probeEvery
		if a.probed.InDoubt() {
			pause = probeAgain
		}
		a.mu.Unlock()
		a.host.Threads.Wait(ctx, pause, nil)
	}
}

// ProbeVolumes has a few bytes written to the volumes, and waits for that a while: on a disk that
// hangs it never ends, and then nothing more is written to it until it has.
func (a *Agent) ProbeVolumes(ctx context.Context) {
	a.mu.Lock()
	if !a.probing {
		a.probing = true
		a.probeEnded.Take() // of one that nobody waited for any more
		a.host.Threads.Go(a.probe)
	}
	a.mu.Unlock()
	a.host.Threads.Wait(ctx, probeLimit, a.probeEnded)
	if ctx.Err() != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	found := a.probeFound
	if a.probing {
		found = node.DiskProblem{Reason: v1alpha1.ReasonDiskHangs, Message: fmt.Sprintf(
			"a write of a few bytes to the %s volume does not end within %s", a.probeAt, probeLimit)}
	}
	before := a.probed.Problem
	if a.probed = a.probed.After(found); a.probed.Problem != before {
		a.wake.Set()
	}
}

// probe runs beside everything else, and once at a time.
func (a *Agent) probe() {
	found := a.host.Disk.Probe(func(volume string) {
		a.mu.Lock()
		a.probeAt = volume
		a.mu.Unlock()
	})
	a.mu.Lock()
	a.probing, a.probeFound = false, found
	a.mu.Unlock()
	a.probeEnded.Set()
}
