// SPDX-License-Identifier: Apache-2.0

package flightrecorderreceiver

import (
	"context"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
	"github.com/lockstep-otel/lockstep/internal/frwatch"
	"github.com/lockstep-otel/lockstep/receiver/flightrecorderreceiver/internal/metadatatest"
)

// silentCollector is a collector of some folders, of which the first is silent from silence to answer, in its
// listing or in the reading of its files.
type silentCollector struct {
	*bench
	silent, reading atomic.Bool
	back            chan struct{}
}

func (s *silentCollector) silence() { s.back = make(chan struct{}); s.silent.Store(true) }

func (s *silentCollector) answer() { s.silent.Store(false); close(s.back); synctest.Wait() }

func newSilentCollector(t *testing.T, gone []string, here string) *silentCollector {
	t.Helper()
	cfg := config(append(gone, here)...)
	cfg.Local, cfg.Settle = false, 0
	require.NoError(t, cfg.Validate())
	s := &silentCollector{bench: &bench{tel: componenttest.NewTelemetry()}}
	set := metadatatest.NewSettings(s.tel)
	var core zapcore.Core
	core, s.said = observer.New(zapcore.WarnLevel)
	set.Logger = zap.New(core)
	h, err := newCollector(set, cfg)
	require.NoError(t, err)
	h.out.ctx, s.dumpCollector = t.Context(), h
	wait := func(path string, reading bool) {
		if s.silent.Load() && s.reading.Load() == reading && slices.Contains(gone, filepath.Dir(path)) {
			<-s.back
		}
	}
	name := h.finder.Name
	h.finder.Name = func(path string) (int64, string, bool) {
		wait(path, false)
		return name(path)
	}
	h.readFile = func(path string, limit int64) ([]byte, error) {
		wait(path, true)
		return frwatch.Read(path, limit)
	}
	t.Cleanup(func() { assert.NoError(t, s.tel.Shutdown(context.Background())) })
	return s
}

// Folders whose file systems do not answer hold up no other folder, are waited for once, and told
// of once; when they answer, their dumps are read, once.
func TestFoldersThatDoNotAnswer(t *testing.T) {
	gone, here := []string{jobDir(t), jobDir(t)}, jobDir(t)
	for i, dir := range append(gone, here) {
		writeDump(t, dumpPath(dir, int64(i)), frwrite.Pickle(dumpOf(int64(i))))
	}
	for _, reading := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newSilentCollector(t, gone, here)
			s.reading.Store(reading)
			s.silence()
			began := time.Now()
			s.look(began)
			s.look(time.Now())
			if reading { // one after the other
				assert.Equal(t, 2*frwatch.ReadLimit, time.Since(began), "waited for more than once")
			} else {
				assert.Equal(t, frwatch.ListLimit, time.Since(began), "waited for more than once")
			}
			assert.Equal(t, int64(1), s.counter(t, "dumps_read"))
			assert.Equal(t, 2, s.said.FilterMessageSnippet("can not be looked for").Len(), "%v", s.said.All())

			s.answer()
			s.look(time.Now())
			s.look(time.Now())
			assert.Equal(t, int64(3), s.counter(t, "dumps_read"))

			s.silence()
			s.look(time.Now())
			s.answer()
			s.look(time.Now())
			assert.Equal(t, int64(3), s.counter(t, "dumps_read"), "what was read before stays known")
			assert.Equal(t, int64(0), s.counter(t, "dumps_failed"))
		})
	}
}
