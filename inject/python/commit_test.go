// SPDX-License-Identifier: Apache-2.0

package python

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/lockstep-otel/lockstep/internal/tier"
	"github.com/lockstep-otel/lockstep/receiver/epochcommitreceiver"
)

const committers = 3

// commits is a job whose ranks commit their saves by a real receiver, again and again.
type commits struct {
	t         *testing.T
	folder    string
	address   string
	service   receiver.Logs
	programs  [committers]program
	confirmed int // the newest epoch that any rank committed
}

func newCommits(t *testing.T) *commits {
	t.Helper()
	listener, err := net.Listen("tcp", loopback()+":0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	c := &commits{t: t, folder: t.TempDir(), address: listener.Addr().String()}
	c.serve()
	t.Cleanup(func() { require.NoError(t, c.service.Shutdown(context.WithoutCancel(t.Context()))) })
	for i := range c.programs {
		c.programs[i] = startProgram(t, interpreter(t), i, c.folder, c.address)
	}
	return c
}

// loopback is an address that other programs do not connect from: the service gives up its
// port and takes it again, and meanwhile a connection of theirs must not get it.
func loopback() string {
	if runtime.GOOS == "linux" {
		return "127.0.0.2"
	}
	return "localhost"
}

// serve begins the receiver, one that knows nothing. A process that another test starts has a
// copy of the last listener until it executes its program; so the address may be in use.
func (c *commits) serve() {
	c.t.Helper()
	err := c.listen()
	for end := time.Now().Add(time.Minute); errors.Is(err, syscall.EADDRINUSE) && time.Now().Before(end); err = c.listen() {
		time.Sleep(time.Millisecond)
	}
	require.NoError(c.t, err)
}

func (c *commits) listen() error {
	f := epochcommitreceiver.NewFactory()
	cfg := f.CreateDefaultConfig().(*epochcommitreceiver.Config)
	cfg.NetAddr.Endpoint = c.address
	var err error
	c.service, err = f.CreateLogs(c.t.Context(), receivertest.NewNopSettings(f.Type()), cfg, consumertest.NewNop())
	require.NoError(c.t, err)
	return c.service.Start(c.t.Context(), componenttest.NewNopHost())
}

// program runs one rank as often as it is asked to, each time in a process that it forks.
type program struct {
	stdin io.Writer
	lines *bufio.Scanner
}

func startProgram(t *testing.T, python string, rank int, folder, address string) program {
	t.Helper()
	cmd := exec.Command(python, "-B", "testdata/committing.py", strconv.Itoa(rank), strconv.Itoa(committers), folder)
	cmd.Env = append(os.Environ(), "PYTHONPATH=.", "LOCKSTEP_COMMIT_URL=http://"+address)
	cmd.Stderr = t.Output()
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		assert.NoError(t, cmd.Wait())
	})
	return program{stdin, bufio.NewScanner(stdout)}
}

// rank is one process of a program, and what it said.
type rank struct {
	process   int
	recovery  bool // it recovered
	recovered int
	data      string
	committed int
	status    int // as of waitpid; 0 where it ended by itself
}

// run runs the job once; the rank that is to die is killed before what it does as the die-th, and the
// others a little later.
func (c *commits) run(name string, saves, dying, die int) (ranks [committers]rank) {
	c.t.Helper()
	var begun, ends sync.WaitGroup
	var faults [committers]error
	begun.Add(committers)
	for i := range ranks {
		r := &ranks[i]
		of := 0
		if i == dying {
			of = die
		}
		_, err := fmt.Fprintln(c.programs[i].stdin, name, saves, of)
		require.NoError(c.t, err)
		ends.Go(func() {
			faults[i] = r.hear(c.programs[i].lines, begun.Done)
			if i == dying && r.status != 0 {
				begun.Wait()
				time.Sleep(rand.N(20 * time.Millisecond))
				for k := range ranks {
					if ranks[k].process == 0 {
						continue // it never began
					}
					_ = syscall.Kill(ranks[k].process, syscall.SIGKILL) // it may have ended
				}
			}
		})
	}
	ends.Wait()
	require.NoError(c.t, errors.Join(faults[:]...))
	return ranks
}

// hear reads what a process prints until it has ended, or its program has. A killed process
// prints whole lines or none: a part of a line is a fault of the test's program.
func (r *rank) hear(lines *bufio.Scanner, begun func()) error {
	r.status = -1
	begun = sync.OnceFunc(begun)
	defer begun()
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		var err error
		switch word {
		case "began":
			_, err = fmt.Sscan(rest, &r.process)
			begun()
		case "recovered":
			r.recovery = true
			_, err = fmt.Sscan(rest, &r.recovered)
			_, r.data, _ = strings.Cut(rest, " ")
		case "committed":
			_, err = fmt.Sscan(rest, &r.committed)
		case "ended":
			if _, err = fmt.Sscan(rest, &r.status); err == nil {
				return nil
			}
		default:
			err = errors.New("unknown word")
		}
		if err != nil {
			return fmt.Errorf("read line %q: %w", lines.Text(), err)
		}
	}
	return lines.Err()
}

// requireOneSave checks that all ranks that recovered hold whole parts of one save, of one run, and not
// of one before that which anybody was told to be confirmed.
func (c *commits) requireOneSave(ranks []rank) {
	c.t.Helper()
	data := map[string]bool{}
	for i := range ranks {
		r := &ranks[i]
		if !r.recovery {
			continue
		}
		require.GreaterOrEqual(c.t, r.recovered, c.confirmed, "rank %d", i)
		if r.recovered > 0 {
			require.Regexp(c.t, fmt.Sprintf(`^\S+ %d end$`, r.recovered), r.data, "rank %d", i)
		}
		data[r.data] = true
	}
	require.LessOrEqual(c.t, len(data), 1, "%v", data)
	for i := range ranks {
		c.confirmed = max(c.confirmed, ranks[i].committed)
	}
}

// TestCommitSurvivesCrashesAtEveryPoint kills a rank before each thing that it does to disk or network
// while it recovers and saves, and the others a little later. The full tier has a second save, which
// is done by the same things as the first.
func TestCommitSurvivesCrashesAtEveryPoint(t *testing.T) {
	t.Parallel()
	c := newCommits(t)
	ranks := c.run("first", 2, -1, 0)
	for i := range ranks {
		require.Zero(t, ranks[i].status, "rank %d", i)
		require.Equal(t, 20, ranks[i].committed)
	}
	c.requireOneSave(ranks[:])
	saves, killed := tier.N(t, 1, 2), 0
	for die := 1; ; die++ {
		if die%5 == 0 { // the service forgets all
			require.NoError(t, c.service.Shutdown(t.Context()))
			c.serve()
		}
		ranks := c.run(fmt.Sprint("run", die), saves, die%committers, die)
		c.requireOneSave(ranks[:])
		if ranks[die%committers].status == 0 {
			break
		}
		killed++
	}
	ranks = c.run("last", 1, -1, 0)
	c.requireOneSave(ranks[:])
	for i := range ranks {
		require.Zero(t, ranks[i].status, "rank %d", i)
		require.GreaterOrEqual(t, ranks[i].recovered, 20)
	}
	records, err := filepath.Glob(filepath.Join(c.folder, ".lockstep-commit", "*.json"))
	require.NoError(t, err)
	assert.Len(t, records, committers)
	t.Logf("killed at %d points; the newest save is %d", killed, c.confirmed)
	// To recover takes 15 things, and a save 27, of which some do not come in every order.
	assert.Greater(t, killed, 12+24*saves)
}
