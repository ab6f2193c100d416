// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/safetensors"
)

// Each step of an optimizer changes its averages, and the model with them. Where a save has the optimizer of an older
// one, byte for byte, and another model, its optimizer and scheduler are of that save.

const (
	sampleBytes = 4096
	maxSamples  = 64 // of a file
)

// runningStatistics are tensors that a model changes without an optimizer.
var runningStatistics = regexp.MustCompile(`running_mean|running_var|num_batches_tracked`)

// stale says what the optimizer and the scheduler of a save should count where both are those of an older save, whose
// model is another; "" where nothing is wrong.
func (s *scan) stale(p *countPair, older []*countPair) string {
	for _, old := range slices.Backward(older) {
		if old.optimizer.n == p.optimizer.n && old.scheduler.n == p.scheduler.n && s.sameFile(old.optimizer.file, p.optimizer.file) && s.otherModel(old.save, p.save) {
			return fmt.Sprintf("more than %d: it is the one of %s, and the model is another", old.optimizer.n, old.optimizer.file)
		}
	}
	return ""
}

// sameFile reports whether samples of two files are alike, which hold several values.
func (s *scan) sameFile(a, b string) bool {
	same, varies, ok := s.compareFiles(a, b)
	return ok && same == 1 && varies
}

// compareFiles returns which part of the samples of two files of one size is alike, and whether any holds several
// values; false where they can not be read or are not of one size.
func (s *scan) compareFiles(a, b string) (same float64, varies, ok bool) {
	x, err := s.open(a)
	if err != nil {
		return 0, false, false
	}
	defer x.close()
	y, err := s.open(b)
	if err != nil {
		return 0, false, false
	}
	defer y.close()
	if x.size != y.size || x.size == 0 {
		return 0, false, false
	}
	step := max(sampleBytes, x.size/maxSamples)
	samples, alike := 0, 0
	for off := int64(0); off < x.size; off += step {
		one, two, ok := samplesAt(x, y, off, min(sampleBytes, x.size-off))
		if !ok {
			return 0, false, false
		}
		samples++
		if bytes.Equal(one, two) {
			alike++
		}
		varies = varies || !bytes.Equal(one[:len(one)/2], one[len(one)-len(one)/2:])
	}
	return float64(alike) / float64(samples), varies, true
}

// samplesAt reads the same part of two files.
func samplesAt(x, y *file, off, n int64) (a, b []byte, ok bool) {
	a, b = make([]byte, n), make([]byte, n)
	_, err1 := x.ReadAt(a, off)
	_, err2 := y.ReadAt(b, off)
	return a, b, err1 == nil && err2 == nil
}

// otherModel reports whether two saves of accelerate have weights that differ.
func (s *scan) otherModel(a, b string) bool {
	f, err := s.folder(a)
	if err != nil {
		return false
	}
	for _, e := range f.entries {
		name := e.Name()
		switch of, _ := accelerateKind(name); {
		case of != "model":
		case strings.HasSuffix(name, ".safetensors"):
			if s.otherWeights(path.Join(a, name), path.Join(b, name)) {
				return true
			}
		case s.isFolder(f, e):
			if s.otherFiles(path.Join(a, name), path.Join(b, name)) {
				return true
			}
		case s.differ(path.Join(a, name), path.Join(b, name)):
			return true
		}
	}
	return false
}

// otherFiles reports whether two folders of a model's shards have files that differ.
func (s *scan) otherFiles(a, b string) bool {
	f, err := s.folder(a)
	return err == nil && slices.ContainsFunc(f.entries, func(e fs.DirEntry) bool {
		return strings.HasSuffix(e.Name(), ".distcp") && s.differ(path.Join(a, e.Name()), path.Join(b, e.Name()))
	})
}

// differ reports whether most samples of two files of one size differ: a few may be what a model changes by itself.
func (s *scan) differ(a, b string) bool {
	same, _, ok := s.compareFiles(a, b)
	return ok && same < 0.5
}

// otherWeights reports whether a tensor differs in two files of safetensors with the same tensors.
func (s *scan) otherWeights(a, b string) bool {
	x, h, err := s.header(a)
	if err != nil {
		return false
	}
	defer x.close()
	y, g, err := s.header(b)
	if err != nil {
		return false
	}
	defer y.close()
	at := map[string]safetensors.Tensor{}
	for _, t := range g.Tensors {
		at[t.Name] = t
	}
	step := max(1, len(h.Tensors)/maxSamples)
	for i := 0; i < len(h.Tensors); i += step {
		t := h.Tensors[i]
		o, ok := at[t.Name]
		if !ok || o.End-o.Begin != t.End-t.Begin || runningStatistics.MatchString(t.Name) {
			continue
		}
		n := min(sampleBytes, t.End-t.Begin)
		one, two := make([]byte, n), make([]byte, n)
		_, err1 := x.ReadAt(one, x.size-lengthOf(h)+t.Begin)
		_, err2 := y.ReadAt(two, y.size-lengthOf(g)+o.Begin)
		if err1 == nil && err2 == nil && !bytes.Equal(one, two) {
			return true
		}
	}
	return false
}

// header opens a file of safetensors and reads what it holds.
func (s *scan) header(name string) (*file, *safetensors.Header, error) {
	f, err := s.open(name)
	if err != nil {
		return nil, nil, err
	}
	h, err := safetensors.Read(f, f.size, safetensors.Limits{})
	if err != nil {
		f.close()
		return nil, nil, err
	}
	return f, h, nil
}

// lengthOf is how many bytes of tensors follow a header.
func lengthOf(h *safetensors.Header) (n int64) {
	for _, t := range h.Tensors {
		n = max(n, t.End)
	}
	return n
}
