// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
)

var begun = time.Unix(1_760_000_000, 0)

func nics(versions ...string) *Read {
	r := &Read{}
	for i, v := range versions {
		r.add(Version{Domain: model.VersionNICFirmware, Unit: string(rune('a' + i)), Model: "board", Version: v, Witness: "w"})
	}
	return r
}

// brief is what an observation says.
type brief struct {
	unit, version string
	units, of     int64
}

func briefs(obs []model.VersionObservation) (out []brief) {
	for _, o := range obs {
		out = append(out, brief{o.Unit, o.Version, o.Units, o.Of})
	}
	return out
}

// Units that are alike are told of as one, others one by one.
func TestUnitsAreToldOfWhereTheyDiffer(t *testing.T) {
	assert.Equal(t, []brief{{"", "1", 3, 1}}, briefs(observations(nics("1", "1", "1").Versions)))
	assert.Equal(t, []brief{{"a", "1", 1, 3}, {"b", "2", 1, 3}, {"c", "1", 1, 3}}, briefs(observations(nics("1", "2", "1").Versions)))
	two := nics("1", "1")
	two.add(Version{Domain: model.VersionNICFirmware, Unit: "z", Model: "another", Version: "9"})
	assert.Equal(t, []brief{{"", "9", 1, 2}, {"", "1", 2, 2}}, briefs(observations(two.Versions)), "another board counts its versions apart")
}

func TestWhatIsToldOverTime(t *testing.T) {
	tell := NewTeller("node7", "id7", begun)
	r := nics("1", "1")
	r.Versions = append(r.Versions, kernelDriver("550.90.07"))
	obs, facts := tell.Tell(r, true, "fleet_version", begun.Add(time.Minute))
	assert.Empty(t, facts)
	assert.Equal(t, []model.VersionObservation{
		{
			Time: begun.Add(time.Minute).UnixNano(), HostName: "node7", HostID: "id7", Domain: model.VersionNICFirmware, Model: "board",
			Version: "1", Units: 2, Witness: "w", Of: 1, Life: begun.UnixNano(), Revision: 1,
		},
		{
			Time: begun.Add(time.Minute).UnixNano(), HostName: "node7", HostID: "id7", Domain: model.VersionKernelDriver,
			Version: "550.90.07", Units: 1, Witness: "w", Of: 1, Life: begun.UnixNano(), Revision: 1,
		},
	}, obs)

	obs, _ = tell.Tell(r, false, "", begun)
	assert.Empty(t, obs, "nothing changed")
	obs, _ = tell.Tell(nics("1", "2"), false, "", begun)
	assert.Equal(t, []brief{{"a", "1", 1, 2}, {"b", "2", 1, 2}}, briefs(obs), "the whole domain; that the driver was not looked at means nothing")
	assert.EqualValues(t, 3, obs[0].Revision)
	obs, _ = tell.Tell(nics("1", "2"), false, "", begun)
	assert.Empty(t, obs)
	obs, _ = tell.Tell(nics("1", "2"), true, "", begun)
	assert.Len(t, obs, 2, "a heartbeat")
	tell.Refused()
	obs, _ = tell.Tell(nics("1", "2"), false, "", begun)
	assert.Len(t, obs, 2, "what was refused is told again")
}

// That versions do not fit together is told when it begins, and with each look at everything.
func TestMismatchesAreTold(t *testing.T) {
	tell := NewTeller("node7", "id7", begun)
	m := Mismatch{model.FactDriverMismatch, "words"}
	r := &Read{Mismatches: []Mismatch{m, m}}
	_, facts := tell.Tell(r, false, "fleet_version", begun)
	assert.Equal(t, []model.NodeFact{{Time: begun.UnixNano(), HostName: "node7", HostID: "id7", Source: "fleet_version", Kind: model.FactDriverMismatch, What: "words"}}, facts)
	_, facts = tell.Tell(r, false, "", begun)
	assert.Empty(t, facts)
	_, facts = tell.Tell(r, true, "", begun)
	assert.Len(t, facts, 1)
	tell.Tell(&Read{}, true, "", begun)
	_, facts = tell.Tell(r, false, "", begun)
	assert.Len(t, facts, 1, "it begins again")
}
