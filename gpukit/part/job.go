// SPDX-License-Identifier: Apache-2.0

package part

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
)

// jobGrace is how long the others of a job have after one rank failed.
const jobGrace = 4 * time.Second

// ncclRoomMiB is what NCCL may reserve of /dev/shm: two communicators of four ranks.
const ncclRoomMiB = 512

// withRoom returns the command, a Python program, with room for NCCL's shared memory.
func withRoom(k *kit.Kit, c kit.Command) kit.Command {
	c.Args = slices.Concat([]string{k.Program("room.py"), strconv.Itoa(ncclRoomMiB)}, c.Args)
	return c
}

// runJob starts a process for each rank, calls during, and waits for all. The error is
// that of the first rank that did not end well.
func runJob(ctx context.Context, k *kit.Kit, world int, limit time.Duration, command func(rank int) kit.Command, during func(context.Context)) ([]*kit.Process, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, kit.ErrLimit)
	defer cancel()
	ended := make(chan error, world)
	var processes []*kit.Process
	var failed error
	late := time.AfterFunc(limit+jobGrace, cancel)
	defer late.Stop()
	for rank := range world {
		p, err := k.Start(ctx, command(rank))
		if err != nil {
			failed = err
			cancel()
			break
		}
		processes = append(processes, p)
		go func() {
			_, err := p.Wait()
			ended <- err
		}()
	}
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		during(ctx)
	}()
	for range processes {
		if err := <-ended; err != nil && failed == nil {
			failed = err
			late.Reset(jobGrace)
		}
	}
	cancel()
	<-looked
	return processes, failed
}
