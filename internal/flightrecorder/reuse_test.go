// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
)

// written is all that dumps say.
func written(all []Gathered) string {
	var b strings.Builder
	for _, g := range all {
		d := g.Dump
		fmt.Fprintln(&b, g.Rank, g.Host, g.Err, d.Rank, d.Host, d.Version, d.LibVersion, d.Groups, d.Status, d.Problems, d.Extras, d.Stats)
		for i := range d.Entries {
			e := &d.Entries[i]
			in, out := d.Sizes(e)
			inTypes, outTypes := d.Types(e)
			name, id := d.Thread(e)
			fmt.Fprintln(&b, *e, d.Name(e), name, id, d.Tag(e), in, out, inTypes, outTypes, d.Frames(e))
		}
	}
	return b.String()
}

// files are dumps of many kinds and lengths, and files that are none.
func files() (all [][]byte) {
	for _, stacks := range []bool{true, false} {
		d := fullDump(stacks)
		d.Entries = d.Entries[:300]
		all = append(all, frwrite.Pickle(d), frwrite.JSON(d))
		d.Entries = d.Entries[290:]
		all = append(all, frwrite.JSON(d), frwrite.Pickle(d))
		all = append(all, fmt.Appendf(nil, `{"0": %s, "1": %s}`, frwrite.JSON(d), frwrite.JSON(d)))
	}
	d := fullDump(true)
	d.Entries = d.Entries[:50]
	gathered := frwrite.Python(4, []frwrite.Pair{{Key: 3, Value: string(frwrite.JSON(d))}})
	all = append(all, gathered)
	cut := all[0][:len(all[0])/2]
	return append(all, cut, []byte("\x80\x02}(X\x03"), []byte("{"))
}

// What is read of a file holds nothing of its bytes, and of no dump before that was released.
func TestMemoryThatIsUsedAgainIsNotSeen(t *testing.T) {
	data, dir := files(), t.TempDir()
	var want, paths []string
	for i, b := range data {
		own := append([]byte(nil), b...)
		all := DecodeAll(own, Options{Stacks: true})
		clear(own)
		if all[0].Dump == nil {
			want = append(want, all[0].Err.Error())
		} else {
			want = append(want, written(all))
		}
		paths = append(paths, filepath.Join(dir, fmt.Sprint(i)))
		require.NoError(t, os.WriteFile(paths[i], b, 0o600))
	}
	assert.Contains(t, want[0], "pt_autograd_1")
	var wait sync.WaitGroup
	for w := range 4 {
		wait.Go(func() {
			for i := range 3 * len(paths) {
				k := (i*(w+1) + w) % len(paths)
				all, err := ReadAll(paths[k], Options{Stacks: true})
				switch {
				case err != nil:
					assert.ErrorContains(t, err, want[k])
				case all[0].Dump == nil:
					assert.Equal(t, want[k], all[0].Err.Error())
				default:
					assert.Equal(t, want[k], written(all), "file %d", k)
				}
				Release(all)
			}
		})
	}
	wait.Wait()
}
