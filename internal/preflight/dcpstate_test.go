// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/preflight"
)

// Names of items are the application's. Those that are an optimizer's in any application tell, parts of words do
// not, and what lies under an unknown key beside a model's is not known.
func TestWeightsOfDCP_NamesOfItems(t *testing.T) {
	for name, tc := range map[string]struct {
		items   []string
		verdict epoch.Verdict
		why     string
	}{
		"a momentum encoder":                  {[]string{"model.w", "momentum_encoder.w"}, epoch.Unknown, `nothing says what lies under "momentum_encoder"`},
		"a momentum encoder without a key":    {[]string{"encoder.w", "momentum_encoder.w"}, preflight.WeightsOnly, "no item"},
		"within the model":                    {[]string{"model.momentum_encoder.w", "model.optimal_transport.w", "model.adamantine.w"}, preflight.WeightsOnly, "no item"},
		"optimal, at the top":                 {[]string{"optimal_transport.w", "layers.0.w"}, preflight.WeightsOnly, "no item"},
		"of a part that learns to optimize":   {[]string{"model.adam_head.w", "step"}, preflight.WeightsOnly, "no item"},
		"a step":                              {[]string{"model.layers.0.w", "step"}, preflight.WeightsOnly, "no item"},
		"a step, parameters without a key":    {[]string{"layers.0.w", "global_step"}, preflight.WeightsOnly, "no item"},
		"a step and a scheduler":              {[]string{"model.w", "lr_scheduler", "step"}, preflight.WeightsOnly, "no item"},
		"a data loader and random numbers":    {[]string{"model.w", "dataloader.dp_rank_0", "rng_state", "train_state.step"}, preflight.WeightsOnly, "no item"},
		"within the state of an application":  {[]string{"app.model.w", "app.step"}, preflight.WeightsOnly, "no item"},
		"an unknown key":                      {[]string{"model.w", "opt.w.m", "step"}, epoch.Unknown, `nothing says what lies under "opt"`},
		"an unknown key of an application":    {[]string{"app.model.w", "app.muon.w.m"}, epoch.Unknown, `nothing says what lies under "muon"`},
		"a trainer":                           {[]string{"layers.w", "trainer"}, epoch.Unknown, `nothing says what lies under "trainer"`},
		"opt with the groups of an optimizer": {[]string{"model.w", "opt.state.w.m", "opt.param_groups"}, epoch.Converged, ""},
		"sgd":                                 {[]string{"model.w", "sgd.state.w.m", "sgd.param_groups.0.lr"}, epoch.Converged, ""},
		"opt_state":                           {[]string{"model.w", "opt_state.w.m"}, epoch.Converged, ""},
		"two of them":                         {[]string{"model.w", "optimizer_g.w.x", "optimizer_d.w.x"}, epoch.Converged, ""},
		"of an application":                   {[]string{"app.model.w", "app.optim.state.w.x"}, epoch.Converged, ""},
		"of a generator":                      {[]string{"gan/model/w", "gan/generator_optimizer/w"}, epoch.Converged, ""},
		"by its state":                        {[]string{"model.w", "k.w.momentum_buffer"}, epoch.Converged, ""},
		"momentum":                            {[]string{"model.w", "momentum.w"}, epoch.Converged, ""},
		"a part of the model, optim":          {[]string{"model.head.optim.w", "model.w"}, preflight.WeightsOnly, "no item"},
		"a part without a key, optimizer":     {[]string{"learned.optimizer.0.w", "learned.w"}, preflight.WeightsOnly, "no item"},
		"a buffer called exp_avg":             {[]string{"norm.w", "norm.exp_avg"}, preflight.WeightsOnly, "no item"},
		"a copy of an encoder":                {[]string{"encoder.w", "encoder.b", "momentum.encoder.w", "momentum.encoder.b"}, preflight.WeightsOnly, "no item"},
		"parts that begin with the words":     {[]string{"encoder.w", "adam_block.w", "optimizer_proj.w"}, preflight.WeightsOnly, "no item"},
		"a count of steps":                    {[]string{"model.w", "train_state.optimizer_steps"}, preflight.WeightsOnly, "no item"},
		"state of few parameters":             {[]string{"model.a.w", "model.b.w", "model.c.w", "k.a.w.exp_avg"}, epoch.Unknown, `nothing says what lies under "k"`},
		"state without a key":                 {[]string{"a.w", "b.w", "state.a.w.exp_avg", "state.b.w.exp_avg", "param_groups.a.w.lr"}, epoch.Converged, ""},
		"state below the key of a trainer":    {[]string{"net.a.w", "trainer_state.optimizers.0.a.w.m"}, epoch.Converged, ""},
		"the state of a part":                 {[]string{"unet.a.w", "unet_optimizer.state.a.w.m"}, epoch.Converged, ""},
		"optimizers in a chain":               {[]string{"decoder.w", "chained_0.optimizer.state.exp_avg.decoder.w", "chained_1.optimizer.state.exp_avg.decoder.w"}, epoch.Converged, ""},
		"the dict of an optimizer":            {[]string{"model_state_dict.w", "optimizer_state_dict.w.m"}, epoch.Converged, ""},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := fstest.MapFS{}
			put(fsys, "", 100, tc.items...)
			r := judge(t, loader, fsys)
			require.Equal(t, tc.verdict, r.Verdict, r.Why)
			require.Contains(t, r.Why, tc.why)
		})
	}
}

// torchtitan keeps parameters without a key, and its optimizer under "optimizer" alone: any other word is a name
// of a part of the model.
func TestWeightsOfDCP_NamesInATorchtitanModel(t *testing.T) {
	for name, items := range map[string][]string{
		"a momentum encoder":      {"tok_embeddings.weight", "momentum_encoder.layers.0.weight"},
		"parts with the words":    {"encoder.w", "optimizer_proj.w", "adam_block.w"},
		"a buffer":                {"layers.0.w", "momentum", "queue"},
		"a buffer of a layer":     {"layers.0.w", "layers.0.exp_avg.w", "layers.1.exp_avg"},
		"a copy":                  {"encoder.0.w", "exp_avg.encoder.0.w"},
		"deep":                    {"learned.optimizer.0.w", "learned.optim.w", "tail.param.optimizer.w"},
		"a part called optim":     {"optim.0.w", "layers.0.w"},
		"a part of a keyed model": {"model.optimizer.w", "model.optim.exp_avg"},
	} {
		fsys := fstest.MapFS{}
		titan(fsys, 200, true)
		put(fsys, "step-300", 300, items...)
		r := judge(t, loader, fsys)
		require.Equal(t, preflight.WeightsOnly, r.Verdict, "%s: %s", name, r.Why)
		require.EqualValues(t, 200, r.Frontier.V, name)
		fsys = fstest.MapFS{}
		put(fsys, "step-300", 300, append(items, "optimizer.state.layers.0.w.exp_avg")...)
		r = judge(t, loader, fsys)
		require.Equal(t, epoch.Converged, r.Verdict, "%s: %s", name, r.Why)
	}
}
