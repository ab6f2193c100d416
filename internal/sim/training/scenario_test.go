// SPDX-License-Identifier: Apache-2.0

package training

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const scenarioPath = "../../../bench/scoreboard/scenarios.yaml"

func TestScenariosMakeJobs(t *testing.T) {
	s, err := Load(scenarioPath)
	require.NoError(t, err)
	assert.Len(t, s.Hash, 16)
	seeds := map[uint64]bool{}
	for i := range s.Cases {
		c := &s.Cases[i]
		for _, ranks := range c.Scales {
			assert.False(t, seeds[c.Seed(ranks, 0)], c.Name)
			seeds[c.Seed(ranks, 0)] = true
			if ranks > 512 {
				continue
			}
			spec, err := c.Spec(ranks)
			require.NoError(t, err)
			j, err := New(spec, c.Seed(ranks, 0))
			require.NoError(t, err, c.Name)
			_, ok := j.Next()
			assert.True(t, ok)
		}
	}
}

func TestBadScenariosAreRefused(t *testing.T) {
	text, err := os.ReadFile(scenarioPath)
	require.NoError(t, err)
	const noise = "version: 1\nnoise: {kernel: 0.1}\nsteps: {8: 4}\nlayouts:\n  ddp:\n    8: {dp: 8}\ncases:\n"
	_, err = parse([]byte(noise + "  - {family: healthy, group: healthy, layouts: [ddp], seeds: {8: 1}}\n"))
	require.NoError(t, err)
	for name, bad := range map[string]string{
		"no cases":        strings.Split(string(text), "cases:")[0],
		"another version": strings.Replace(string(text), "version: 1\n\nnoise", "version: 2\n\nnoise", 1),
		"unknown field":   noise + "  - {family: healthy, group: healthy, layouts: [ddp], seeds: {8: 1}, colour: red}\n",
		"unknown group":   noise + "  - {family: healthy, group: sick, layouts: [ddp], seeds: {8: 1}}\n",
		"unknown layout":  noise + "  - {family: healthy, group: healthy, layouts: [tp], seeds: {8: 1}}\n",
		"unknown scale":   noise + "  - {family: healthy, group: healthy, layouts: [ddp], seeds: {16: 1}}\n",
		"no seeds":        noise + "  - {family: healthy, group: healthy, layouts: [ddp]}\n",
		"no steps":        strings.Replace(noise, "8: 4", "9: 4", 1) + "  - {family: healthy, group: healthy, layouts: [ddp], seeds: {8: 1}}\n",
		"unknown fault":   noise + "  - {family: x, group: fault, layouts: [ddp], seeds: {8: 1}, faults: [{family: x}]}\n",
		"small of all":    "small: 1\n" + noise + "  - {family: healthy, group: healthy, layouts: [ddp], seeds: {8: 1}}\n",
		"unknown curve":   noise + "  - {family: x, group: curve, curve: x, layouts: [ddp], seeds: {8: 1}}\n",
		"one name twice":  noise + "  - {family: x, group: healthy, layouts: [ddp, ddp], seeds: {8: 1}}\n",
		"other size":      strings.Replace(noise, "dp: 8", "dp: 4", 1) + "  - {family: x, group: healthy, layouts: [ddp], seeds: {8: 1}}\n",
	} {
		_, err := parse([]byte(bad))
		assert.Error(t, err, name)
	}
	_, err = Load("no such file")
	require.Error(t, err)
	_, err = (&Case{}).Spec(7)
	assert.Error(t, err)
}

func TestCurvesWorsenTheRecording(t *testing.T) {
	s, err := Load(scenarioPath)
	require.NoError(t, err)
	worst := map[string]float64{}
	for i := range s.Cases {
		if c := &s.Cases[i]; c.Group == GroupCurve {
			b := &c.base
			got := map[string]float64{"missing": b.Missing, "lost": b.Lost, "late": b.Late, "clock": b.Clock.Error}
			for curve, x := range got {
				if curve == c.Curve {
					assert.InDelta(t, c.X, x, 0, c.Name)
				} else {
					assert.Zero(t, x, c.Name)
				}
			}
			worst[c.Curve] = max(worst[c.Curve], c.X)
		}
	}
	assert.Equal(t, map[string]float64{"missing": 0.3, "lost": 0.05, "late": 0.1, "clock": 0.005}, worst)
}

// What is fitted on and what is reported are different families, by name; and some of
// those that report are different faults.
func TestFamiliesEitherCalibrateOrReport(t *testing.T) {
	s, err := Load(scenarioPath)
	require.NoError(t, err)
	fits, reports := map[string]bool{}, map[string]bool{}
	for i := range s.Cases {
		c := &s.Cases[i]
		assert.GreaterOrEqual(t, c.Floor, 0.0)
		assert.LessOrEqual(t, c.Floor, 1.0)
		if c.Calibrate {
			fits[c.Family] = true
		} else if c.Group == GroupFault || c.Group == GroupImbalance {
			reports[c.Family] = true
		}
	}
	fitted := map[nature]string{}
	for i := range s.Cases {
		for _, f := range s.Cases[i].base.Faults {
			if s.Cases[i].Calibrate {
				fitted[natures[f.Family]] = f.Family
			}
		}
	}
	novel := map[string]bool{}
	for i := range s.Cases {
		c := &s.Cases[i]
		for _, f := range c.base.Faults {
			if c.Novel {
				assert.False(t, c.Calibrate, c.Name)
				assert.Empty(t, fitted[natures[f.Family]], "%s is what %s is", c.Name, f.Family)
				novel[f.Family] = true
			}
		}
	}
	for _, family := range []string{KernelChoice, HostCPU, HostCheckpoint, Jitter, JobWide} {
		assert.True(t, novel[family], family)
	}
	for _, family := range []string{GPUClock, Transient, Ramp, OneKernel, NICRx, HotExpertBlind} {
		assert.False(t, novel[family], family)
	}
	for family := range fits {
		assert.False(t, reports[family], family)
	}
	assert.Greater(t, len(reports), len(fits))
}

func FuzzScenarios(f *testing.F) {
	text, err := os.ReadFile(scenarioPath)
	require.NoError(f, err)
	f.Add(text)
	f.Add([]byte("version: 1\nlayouts: {a: {8: {dp: 8}}}\nsteps: {8: 1}\ncases: [{family: a, group: healthy, layouts: [a], seeds: {8: 1}}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parse(text)
		if err != nil {
			return
		}
		for i := range s.Cases {
			for _, n := range s.Cases[i].Scales {
				_, err := s.Cases[i].Spec(n)
				require.NoError(t, err)
			}
		}
	})
}
