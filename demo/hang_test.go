// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ends waits for each rank in the background.
func ends(ranks []*rank) []chan error {
	out := make([]chan error, len(ranks))
	for i, r := range ranks {
		out[i] = make(chan error, 1)
		go func() { out[i] <- r.cmd.Wait() }()
	}
	return out
}

// After such a fault nobody comes further than its step, and nobody ends by itself but the rank
// that does; a signal to all ends all, in good order.
func TestFaultsByWhichAJobHangs(t *testing.T) {
	program := worker(t)
	for _, fault := range []string{"hang", "exit", "mismatch"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			args := []string{"--steps", "0", "--patient", "--no-pace", "--checkpoint-every", "6"}
			ranks := startRanks(t, program, 3, nil, args, []string{"--fault", fault, "--fault-from", "6"})
			ended := ends(ranks)
			awaitCheckpoints(t, ranks) // after all steps before 6
			stay := ranks
			if fault == "exit" {
				stay = ranks[:2]
				var status *exec.ExitError
				require.ErrorAs(t, <-ended[2], &status)
				assert.Equal(t, 1, status.ExitCode())
				assert.Empty(t, ranks[2].stdout.String(), "it says nothing")
			}
			time.Sleep(200 * time.Millisecond) // twenty steps and more without the fault
			for i, r := range stay {
				select {
				case err := <-ended[i]:
					t.Fatalf("rank %d ended by itself: %v", i, err)
				default:
				}
				require.NoError(t, r.cmd.Process.Signal(syscall.SIGTERM))
			}
			for i, r := range stay {
				// An alarm ends a rank that does not end in good order, and that is an error.
				require.NoError(t, <-ended[i], r.stderr.String())
				assert.Contains(t, r.stdout.String(), `"steps":6,`, "all steps before 6")
				assert.Contains(t, r.stdout.String(), `"weights_identical":false`)
			}
		})
	}
}

// The rank that has a pause spends it, the others wait, and all learn as without.
func TestPauses(t *testing.T) {
	program := worker(t)
	began := time.Now()
	args := []string{"--steps", "12", "--no-pace", "--pause", "1:checkpoint_save:3:4:300", "--pause=0:compile:5:0:200"}
	for _, r := range startRanks(t, program, 2, nil, args, nil) {
		o := r.outcome(t)
		assert.Equal(t, 12, o.Steps)
		assert.True(t, o.Identical)
	}
	// Before steps 3, 7 and 11, and before step 5.
	assert.GreaterOrEqual(t, time.Since(began), 3*300*time.Millisecond+200*time.Millisecond)
}

func TestWrongPauses(t *testing.T) {
	program := worker(t)
	for _, text := range []string{"", "1", "1:a:2:3", "1:a:2:3:4x", "1:a:-2:3:4", "x:a:2:3:4", "1::2:3:4"} {
		said, err := exec.CommandContext(t.Context(), program, "--pause", text).CombinedOutput()
		var status *exec.ExitError
		require.ErrorAs(t, err, &status, text)
		assert.Equal(t, 2, status.ExitCode(), text)
		assert.Contains(t, string(said), "parse --pause: got "+text, text)
	}
}
