// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"regexp"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// nanotronSlices is the key of a file's metadata that says which part of the whole tensor its rank has.
const nanotronSlices = "local_global_slices_pairs"

var tensorRank = regexp.MustCompile(`tp-rank-\d+`)

// nanotronCut is a part of a tensor: the name of its files but for the rank of tensor parallelism, and the slices.
type nanotronCut struct{ tensor, slices string }

// nanotronCuts are the first files of each part, with their domains.
type nanotronCuts map[nanotronCut]twinFile

type twinFile struct {
	domain int
	name   string
}

// note doubts a file that says it has the same part of a tensor as that of another rank.
func (c nanotronCuts) note(b *builder, i int, name string, metadata map[string]string) {
	slices := metadata[nanotronSlices]
	if slices == "" || !tensorRank.MatchString(name) {
		return
	}
	cut := nanotronCut{tensorRank.ReplaceAllString(name, "#"), slices}
	first, again := c[cut]
	if !again {
		c[cut] = twinFile{i, name}
		return
	}
	for _, pair := range [][2]twinFile{{first, {i, name}}, {{i, name}, first}} {
		b.doubt(pair[0].domain, model.DomainTentative, Problem{
			CheckWitness, Suspect, pair[0].name,
			"got the same part of its tensor as " + pair[1].name + ", by " + nanotronSlices + "; want another: one was copied over the other",
		})
	}
}
