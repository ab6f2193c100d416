// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/safetensors"
)

// A job with several optimizers, as of a generator and a discriminator, may begin one later, pause it or freeze it. One
// that stays while another goes on is of an older save only where no weight has stayed since with it.

// staying is an optimizer that is as an older save has it.
type staying struct {
	pair  *countPair
	why   string
	since *countPair // of the newest save with the same counts; nil where there is none
}

// judgeStaying doubts the optimizers of a save that stay, and their schedulers, unless they were paused. goOn has those
// that do not stay, by the name of the optimizer: of one that is sharded some shards may.
func (s *scan) judgeStaying(save *Save, stay []staying, goOn map[string]bool) {
	for _, st := range stay {
		p := st.pair
		others := len(goOn) > 0 || slices.ContainsFunc(save.counters, func(c counter) bool { return c.optimizer != "" })
		if others && !goOn[p.of] && st.since != nil && !s.allWeightsDiffer(st.since.save, p.save) {
			continue
		}
		s.doubtCount(save, &p.optimizer, st.why)
		if p.scheduler.file != "" {
			s.doubtCount(save, &p.scheduler, st.why)
		}
	}
}

// unchanged returns the last of older saves where it counts the same; nil where it counts otherwise.
func (p *countPair) unchanged(older []*countPair) *countPair {
	if n := len(older); n > 0 && p.alike(older[n-1]) {
		return older[n-1]
	}
	return nil
}

// mayPause reports whether an optimizer that lags, one of several of a save whose name says its step, may have begun
// later or been paused: another goes on, and it has not gone back. all are the counts of the same in all saves.
func (s *scan) mayPause(save *Save, c *counter, all map[string][]*counter) bool {
	if c.optimizer == "" || c.n > c.want {
		return false
	}
	other := len(save.pairs)+len(save.alone) > 0
	for i := range save.counters {
		o := &save.counters[i]
		if o.optimizer == "" || o.doubt(all[o.of], save.counters) != "" {
			continue
		}
		if o.optimizer == c.optimizer {
			return false // it has gone on, by another shard
		}
		other = true
	}
	return other && !slices.ContainsFunc(all[c.of], func(o *counter) bool {
		return o.step < c.step && (o.n > c.n || o.n == c.n && s.allWeightsDiffer(path.Dir(o.file), path.Dir(c.file)))
	})
}

// allWeightsDiffer reports whether the models of two saves of accelerate have the same tensors, and each differs, but
// for those that change without an optimizer.
func (s *scan) allWeightsDiffer(a, b string) bool {
	f, err := s.folder(a)
	if err != nil {
		return false
	}
	tensors := 0
	for _, e := range f.entries {
		name := e.Name()
		if of, _ := accelerateKind(name); of != model.DomainModel {
			continue
		}
		if !strings.HasSuffix(name, ".safetensors") {
			return false
		}
		n, ok := s.tensorsDiffer(path.Join(a, name), path.Join(b, name))
		if !ok {
			return false
		}
		tensors += n
	}
	return tensors > 0
}

// tensorsDiffer returns how many tensors two files of safetensors have, all of which differ; false where one does not,
// or can not be compared.
func (s *scan) tensorsDiffer(a, b string) (n int, ok bool) {
	x, h, err := s.header(a)
	if err != nil {
		return 0, false
	}
	defer x.close()
	y, g, err := s.header(b)
	if err != nil {
		return 0, false
	}
	defer y.close()
	at := map[string]safetensors.Tensor{}
	for _, t := range g.Tensors {
		at[t.Name] = t
	}
	for _, t := range h.Tensors {
		if runningStatistics.MatchString(t.Name) {
			continue
		}
		o, found := at[t.Name]
		length := min(sampleBytes, t.End-t.Begin)
		if !found || o.End-o.Begin != t.End-t.Begin || s.ctx.Err() != nil {
			return 0, false
		}
		one, two := make([]byte, length), make([]byte, length)
		_, err1 := x.ReadAt(one, x.size-lengthOf(h)+t.Begin)
		_, err2 := y.ReadAt(two, y.size-lengthOf(g)+o.Begin)
		if err1 != nil || err2 != nil || bytes.Equal(one, two) {
			return 0, false
		}
		n++
	}
	return n, true
}
