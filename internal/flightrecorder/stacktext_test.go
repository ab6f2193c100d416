// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// native and script are frames of C++ and of Python.
func native(n int) (frames []frwrite.Frame) {
	for i := range n {
		frames = append(frames, frwrite.Frame{Name: fmt.Sprintf("c10d::ProcessGroupNCCL::collective<%d>(%s)", i, strings.Repeat("at::Tensor&, ", 20)), File: "/src/ProcessGroupNCCL.cpp", Line: int64(i + 1)})
	}
	return frames
}

func script(n int) (frames []frwrite.Frame) {
	for i := range n {
		frames = append(frames, frwrite.Frame{Name: fmt.Sprintf("python_%d", i), File: "/job/train.py", Line: int64(i + 1)})
	}
	return frames
}

func TestStackText_FramesOfBothLanguages(t *testing.T) {
	join := func(parts ...[]frwrite.Frame) (all []frwrite.Frame) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	for name, c := range map[string]struct {
		frames     []frwrite.Frame
		cpp, py    int // at least so many of each
		complete   bool
		firstIsCPP bool
	}{
		"few of each":              {join(native(3), script(2)), 3, 2, true, true},
		"many of C++ before":       {join(native(90), script(4)), 10, 4, false, true},
		"many of both":             {join(native(90), script(90)), 10, 32, false, true},
		"interleaved":              {join(native(30), script(2), native(30), script(3)), 10, 5, false, true},
		"C++ alone":                {native(20), 20, 0, true, true},
		"Python alone":             {script(60), 0, 60, true, false},
		"Python called from C++":   {join(script(5), native(80)), 10, 5, false, false},
		"many of Python, two of C": {join(native(2), script(70)), 2, 62, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := dumpOf(0, op{"0/w", 0, "nccl:all_reduce", 1, 0, false})
			d.Stacks, d.Entries[0].Frames = true, c.frames
			for form, file := range map[string][]byte{"pickle": frwrite.Pickle(d), "json": withFrames(t, d)} {
				read, err := Decode(file, Options{Stacks: true})
				require.NoError(t, err)
				assert.True(t, read.Stacks, form)
				s := read.State(model.Rank{Rank: 1}, "x", StateOptions{})
				require.Len(t, s.Stacks, 1, form)
				text := s.Stacks[0]
				assert.GreaterOrEqual(t, strings.Count(text, "c10d::"), c.cpp, form)
				assert.GreaterOrEqual(t, strings.Count(text, "python_"), c.py, form)
				assert.Equal(t, c.complete, !strings.Contains(text, "\n..."), form)
				assert.Equal(t, c.firstIsCPP, strings.HasPrefix(text, "c10d::"), form)
				assert.LessOrEqual(t, len(text), maxStackBytes+2*(2*maxText+64), form)
			}
		})
	}
}

// withFrames is the JSON of a dump with its frames, as programs write it that read the pickle.
func withFrames(t *testing.T, d *frwrite.Dump) []byte {
	t.Helper()
	var all map[string]any
	require.NoError(t, json.Unmarshal(frwrite.JSON(d), &all))
	for i, e := range all["entries"].([]any) {
		frames := []any{}
		for _, f := range d.Entries[i].Frames {
			frames = append(frames, map[string]any{"name": f.Name, "filename": f.File, "line": f.Line})
		}
		e.(map[string]any)["frames"] = frames
	}
	text, err := json.Marshal(all)
	require.NoError(t, err)
	return text
}

// Frames of JSON that are none are passed over.
func TestJSONFrames_ThatAreNone(t *testing.T) {
	for name, frames := range map[string]string{
		"null": "null", "none": "[]", "numbers": "[1, 2]", "a text": `"train.py"`, "an object": `{"name": "f"}`,
	} {
		t.Run(name, func(t *testing.T) {
			d := dumpOf(0, op{"0/w", 0, "nccl:all_reduce", 1, 0, false})
			text := strings.Replace(string(frwrite.JSON(d)), `"record_id"`, `"frames": `+frames+`, "record_id"`, 1)
			read, err := Decode([]byte(text), Options{Stacks: true})
			require.NoError(t, err)
			require.Len(t, read.Entries, 1)
			assert.Empty(t, read.Frames(&read.Entries[0]))
		})
	}
}
