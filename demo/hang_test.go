package demo

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ended reports which ranks ended within a time.
func ended(ranks []*rank, within time.Duration) (errs []error, done []bool) {
	errs, done = make([]error, len(ranks)), make([]bool, len(ranks))
	type end struct {
		rank int
		err  error
	}
	ends := make(chan end, len(ranks))
	for i, r := range ranks {
		go func() { ends <- end{i, r.cmd.Wait()} }()
	}
	over := time.After(within)
	for range ranks {
		select {
		case e := <-ends:
			errs[e.rank], done[e.rank] = e.err, true
			continue
		case <-over:
		}
		break
	}
	return errs, done
}

// After such a fault nobody comes further than its step, and nobody ends by itself but the rank
// that does; a signal to all ends all, in good order.
func TestFaultsByWhichAJobHangs(t *testing.T) {
	program := worker(t)
	const from = 6
	for _, fault := range []string{"hang", "exit", "mismatch"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			ranks := startRanks(t, program, 3, nil, []string{"--steps", "0", "--patient", "--no-pace"}, []string{"--fault", fault, "--fault-from", "6"})
			time.Sleep(2 * time.Second) // some hundred steps without the fault
			for i, r := range ranks {
				err := syscall.Kill(r.cmd.Process.Pid, 0)
				assert.NoError(t, err, "rank %d is there, if only to be waited for", i)
				_ = r.cmd.Process.Signal(syscall.SIGTERM)
			}
			errs, done := ended(ranks, 8*time.Second) // less than the alarm that ends whoever does not
			for i := range ranks {
				assert.True(t, done[i], "rank %d", i)
				if fault == "exit" && i == 2 {
					var status *exec.ExitError
					require.ErrorAs(t, errs[i], &status)
					assert.Equal(t, 1, status.ExitCode())
					assert.Empty(t, ranks[i].stdout.String(), "it says nothing")
					continue
				}
				require.NoError(t, errs[i], ranks[i].stderr.String())
				assert.Contains(t, ranks[i].stdout.String(), `"steps":6,`, "all steps before %d", from)
				assert.Contains(t, ranks[i].stdout.String(), `"weights_identical":false`)
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
