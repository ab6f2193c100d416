package capability

import (
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// whole is how many jobs of each sort the table speaks of.
const whole = 10

// jobs returns how many jobs of each sort are simulated: a quick look, or as many as
// LOCKSTEP_CAPABILITY_JOBS says.
func jobs(t *testing.T) int {
	t.Helper()
	const quick = 2
	text := os.Getenv("LOCKSTEP_CAPABILITY_JOBS")
	if text == "" {
		return quick
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, "read LOCKSTEP_CAPABILITY_JOBS")
	return n
}

// sight is jobs with a fault as a row sees them.
type sight struct {
	row   Row
	fault string
	shape shape
}

// seenBefore are the outcomes of jobs that several cells rest on.
var seenBefore sync.Map

// outcomes runs jobs and returns under what those at fault are named, sorted, with
// Nobody where a job ended without a finding. Nobody else may be named.
func outcomes(t *testing.T, row Row, f *fault, s shape) (out []string) {
	t.Helper()
	key := sight{row, f.name, s}
	if known, ok := seenBefore.Load(key); ok {
		return known.([]string)
	}
	for seed := range jobs(t) {
		found, over := diagnose(t, seen[row], *f, s, seed)
		assert.Positive(t, over, "seed %d: the engine must have had steps to judge", seed)
		if len(found) == 0 {
			out = append(out, Nobody)
		}
		for _, x := range found {
			assert.Equal(t, model.FindingStraggler, x.kind, "seed %d", seed)
			assert.Contains(t, judged, x.class, "seed %d", seed)
			assert.Contains(t, f.at, int(x.rank), "seed %d: an innocent is named: %+v", seed, x)
			if x.class == model.ClassLink {
				assert.EqualValues(t, (culprit+1)%ranks, x.peer, "seed %d", seed)
			}
			out = append(out, x.as())
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if !t.Failed() {
		seenBefore.Store(key, out)
	}
	return out
}

// as is the class, with its cause where that is known.
func (x *told) as() string {
	if x.cause == model.CauseUnknown {
		return x.class
	}
	return x.class + "/" + x.cause
}

// live are the rows that the engine judges.
var live = []Row{HostEvents, KernelChannels, ProxySteps, Scopes, CUPTI, Kineto}

// TestStragglers finds out each cell of kind straggler.
func TestStragglers(t *testing.T) {
	for _, c := range Classes() {
		if c.Kind != model.FindingStraggler {
			continue
		}
		t.Run(c.key(), func(t *testing.T) {
			scenes := scenesOf(c.key())
			require.NotEmpty(t, scenes, "no job with such a fault is simulated")
			for _, row := range live {
				t.Run(string(row), func(t *testing.T) {
					t.Parallel()
					var got []string
					for _, s := range scenes {
						got = append(got, outcomes(t, row, s.fault, s.shape)...)
					}
					slices.Sort(got)
					got = slices.Compact(got)
					cell, ok := Of(row, c)
					require.True(t, ok)
					assert.Equal(t, verdictOf(c, got), cell.Verdict, "told: %v", got)
					if cell.Told == nil {
						cell.Told = []string{Nobody}
					}
					if jobs(t) >= whole {
						assert.Equal(t, cell.Told, got)
					}
					assert.Subset(t, cell.Told, got)
				})
			}
		})
	}
}

// judged are the classes that the engine tells of at all; TestStragglers finds no other.
var judged = []string{model.ClassCompute, model.ClassHost, model.ClassLink}

// verdictOf is what a cell of the class may claim, given under what those at fault
// were named.
func verdictOf(c Class, got []string) Verdict {
	truth := c.Name
	if c.Cause != "" {
		truth += "/" + c.Cause
	}
	switch {
	case slices.Equal(got, []string{truth}):
		return Decides
	case !slices.Equal(got, []string{Nobody}):
		return Bounds
	case slices.Contains(judged, c.Name):
		return Abstains
	}
	return NotJudged
}

// A cell that claims more, or less, than what was told is found out.
func TestVerdictsAreDerived(t *testing.T) {
	gc := Class{Kind: model.FindingStraggler, Name: model.ClassHost, Cause: model.CauseGC}
	for _, tc := range []struct {
		class Class
		got   []string
		want  Verdict
	}{
		{gc, []string{"host/gc"}, Decides},
		{gc, []string{"host"}, Bounds},
		{gc, []string{"host/gc", Nobody}, Bounds},
		{gc, []string{"host", "host/gc"}, Bounds},
		{gc, []string{Nobody}, Abstains},
		{Class{Kind: model.FindingStraggler, Name: "node"}, []string{"compute"}, Bounds},
		{Class{Kind: model.FindingStraggler, Name: "node"}, []string{Nobody}, NotJudged},
		{Class{Kind: model.FindingStraggler, Name: model.ClassHost}, []string{"host"}, Decides},
		{Class{Kind: model.FindingStraggler, Name: model.ClassHost}, []string{"host/gc"}, Bounds},
	} {
		assert.Equal(t, tc.want, verdictOf(tc.class, tc.got), "%v %v", tc.class, tc.got)
	}
}

// A healthy job of every shape, under every row: nobody is named.
func TestHealthyJobs(t *testing.T) {
	healthy := fault{name: "healthy"}
	for _, s := range Shapes {
		for _, row := range live {
			t.Run(s.Job+"/"+string(row), func(t *testing.T) {
				t.Parallel()
				assert.Equal(t, []string{Nobody}, outcomes(t, row, &healthy, shape(s.Job)))
			})
		}
	}
}

// Where a program repeats one collective and no other, and marks no steps, it has
// none that could be compared: nobody is named, healthy or not.
func TestOneRepeatedCollective(t *testing.T) {
	healthy := fault{name: "healthy"}
	assert.Equal(t, []string{Nobody}, outcomes(t, Scopes, &healthy, repeating))
	for seed := range jobs(t) {
		found, judged := diagnose(t, seen[KernelChannels], healthy, repeating, seed)
		assert.Empty(t, found, "seed %d", seed)
		assert.Zero(t, judged, "seed %d: what makes a step is not known", seed)
	}
}

// TestShapes finds out who is named in programs of each shape.
func TestShapes(t *testing.T) {
	for _, s := range Shapes {
		for name, want := range map[string]map[Row]string{model.ClassCompute: s.Compute, model.ClassHost: s.Host} {
			for _, row := range live {
				if want[row] == "" {
					continue
				}
				t.Run(s.Job+"/"+name+"/"+string(row), func(t *testing.T) {
					t.Parallel()
					assert.Equal(t, []string{want[row]}, outcomes(t, row, faultNamed(name), shape(s.Job)))
				})
			}
		}
	}
}
