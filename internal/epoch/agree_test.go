// SPDX-License-Identifier: Apache-2.0

package epoch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func seen(kind model.DomainKind, id string, s model.DomainState, e ...int64) model.EpochObservation {
	o := model.EpochObservation{JobID: "job", Generation: "2 ranks", Save: 100, Domain: model.Domain{Kind: kind, ID: id}, State: s, Observer: "a"}
	if len(e) > 0 {
		o.Epoch = model.Some(e[0])
	}
	return o
}

func TestAgree(t *testing.T) {
	const c, ab, ten = model.DomainCommitted, model.DomainAbsent, model.DomainTentative
	m := model.DomainModel
	for name, tc := range map[string]struct {
		obs  []model.EpochObservation
		want Verdict
	}{
		"nothing":                        {nil, Unknown},
		"all confirm":                    {[]model.EpochObservation{seen(m, "0", c, 100), seen(m, "1", c, 100)}, Converged},
		"one is missing":                 {[]model.EpochObservation{seen(m, "0", c, 100), seen(m, "1", ab)}, Converging},
		"one is torn":                    {[]model.EpochObservation{seen(m, "0", c, 100), seen(m, "1", ten, 100)}, Converging},
		"one is whole, not confirmed":    {[]model.EpochObservation{seen(m, "0", c, 100), seen(m, "1", model.DomainReflecting, 100)}, Converging},
		"all are missing":                {[]model.EpochObservation{seen(m, "0", ab), seen(m, "1", ab)}, Unknown},
		"two epochs":                     {[]model.EpochObservation{seen(m, "0", c, 100), seen(m, "1", c, 99)}, MixedEpoch},
		"two epochs, and one missing":    {[]model.EpochObservation{seen(m, "0", c, 100), seen(m, "1", c, 99), seen(m, "2", ab)}, MixedEpoch},
		"all hold another than the name": {[]model.EpochObservation{seen(m, "0", c, 99), seen(m, "1", c, 99)}, MixedEpoch},
		"committed to nobody knows what": {[]model.EpochObservation{seen(m, "0", c, 100), seen(m, "1", c)}, Converging},
		"a torn one of another epoch":    {[]model.EpochObservation{seen(m, "0", c, 100), seen(m, "1", ten, 99)}, Converging},
	} {
		t.Run(name, func(t *testing.T) {
			got := Agree(100, tc.obs)
			require.Equal(t, tc.want, got.Verdict)
			require.Equal(t, tc.want == Converged, got.Epoch.OK)
			require.Equal(t, len(tc.obs), got.Domains)
		})
	}
}

func TestAgreeNamesABoundedNumber(t *testing.T) {
	var obs []model.EpochObservation
	for i := range 1000 {
		obs = append(obs, seen(model.DomainModel, string(rune('a'+i%26)), model.DomainAbsent))
	}
	got := Agree(100, obs)
	require.Equal(t, 1000, got.MissingCount)
	require.Len(t, got.Missing, MaxNamed)
}
