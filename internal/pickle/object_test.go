// SPDX-License-Identifier: Apache-2.0

package pickle

import (
	"bytes"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// python pickles what an expression of Python is, or skips the test where there is no Python.
func python(t *testing.T, protocol, setup, expr string) []byte {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed: pickles of real Python are not compared")
	}
	script := "import sys, pickle, io\n" + setup + "\nsys.stdout.buffer.write(pickle.dumps(" + expr + ", protocol=" + protocol + "))"
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "python3", "-c", script)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	return out
}

func inert(t *testing.T, data []byte) (*Machine, Value) {
	t.Helper()
	m := NewMachine(data, Inert, Limits{})
	v, err := m.Run()
	require.NoError(t, err)
	return m, v
}

func TestObjectsOfPythonAreDescribed(t *testing.T) {
	const setup = `
import argparse, collections, dataclasses, enum, types
sys.modules["frame"] = types.ModuleType("frame"); mod = types.ModuleType("frame.work"); sys.modules["frame.work"] = mod
@dataclasses.dataclass
class Info:
    relative_path: str
    offset: int
Info.__module__ = "frame.work"; mod.Info = Info
class Kind(enum.Enum):
    A = 7
Kind.__module__ = "frame.work"; mod.Kind = Kind
class Slots:
    __slots__ = ("a",)
Slots.__module__ = "frame.work"; mod.Slots = Slots
slotted = Slots(); slotted.a = 5
class Size(tuple): pass
Size.__module__ = "frame.work"; mod.Size = Size
class L(list): pass
L.__module__ = "frame.work"; mod.L = L
`
	const expr = `{"info": Info("__0_0.distcp", 12), "args": argparse.Namespace(iteration=3),
		"ordered": collections.OrderedDict(a=1, b=2), "kind": Kind.A, "slots": slotted, "size": Size((1, 2)),
		"set": {1}, "frozen": frozenset([2]), "list": L([3, 4]), "bytes": bytearray(b"xy"), "class": Info}`
	for _, protocol := range []string{"2", "3", "4", "5"} {
		t.Run("protocol "+protocol, func(t *testing.T) {
			m, root := inert(t, python(t, protocol, setup, expr))
			get := func(v Value, key string) Value {
				t.Helper()
				got, ok := m.Get(v, key)
				require.True(t, ok, key)
				return got
			}
			info := get(root, "info")
			require.Equal(t, Object, info.Kind())
			require.True(t, m.Is(info, "frame.work", "Info"))
			require.False(t, m.Is(info, "frame", "Info"))
			require.Equal(t, "__0_0.distcp", string(m.Text(get(info, "relative_path"))))
			require.EqualValues(t, 12, get(info, "offset").Int())
			require.EqualValues(t, 3, get(get(root, "args"), "iteration").Int())
			require.EqualValues(t, 2, get(get(root, "ordered"), "b").Int())
			require.EqualValues(t, 7, m.Args(get(root, "kind"))[0].Int())
			require.EqualValues(t, 5, get(get(root, "slots"), "a").Int())
			size := m.Args(get(root, "size"))
			require.Len(t, m.Items(size[len(size)-1]), 2)
			require.EqualValues(t, 4, m.Items(m.Contents(get(root, "list")))[1].Int())
			require.True(t, m.Is(get(root, "class"), "frame.work", "Info"))
			_, ok := m.Get(info, "length")
			require.False(t, ok)
		})
	}
}

func TestPersistentIDsAreValues(t *testing.T) {
	m, root := inert(t, python(t, "2", `
class P(pickle.Pickler):
    def persistent_id(self, o):
        return ("storage", "0", 12) if o is Ellipsis else None
def dumps(o, protocol):
    b = io.BytesIO(); P(b, protocol).dump(o); return b.getvalue()
pickle.dumps = dumps`, `{"w": ...}`))
	w, ok := m.Get(root, "w")
	require.True(t, ok)
	require.Equal(t, Persistent, w.Kind())
	require.EqualValues(t, 12, m.Items(m.Items(w)[0])[2].Int())
}

// TestWhatNamesCodeIsNeverCalled: a pickle that Python would execute is read as a description.
func TestWhatNamesCodeIsNeverCalled(t *testing.T) {
	m, root := inert(t, []byte("\x80\x02cos\nsystem\nX\x08\x00\x00\x00touch /x\x85R."))
	require.True(t, m.Is(root, "os", "system"))
	require.Equal(t, "touch /x", string(m.Text(m.Args(root)[0])))
	_, err := NewMachine([]byte("\x80\x02cos\nsystem\n)R."), DataOnly, Limits{}).Run()
	require.ErrorContains(t, err, "GLOBAL")
}

func TestObjectsThatAreWrongAreRefused(t *testing.T) {
	for name, data := range map[string]string{
		"REDUCE of a number":            "\x80\x02K\x01)R.",
		"REDUCE without arguments":      "\x80\x02ca\nb\nR.",
		"arguments that are no tuple":   "\x80\x02ca\nb\nK\x01R.",
		"BUILD of a number":             "\x80\x02K\x01}b.",
		"BUILD without a state":         "\x80\x02ca\nb\n)Rb.",
		"a class whose name is missing": "\x80\x02ca\n",
		"STACK_GLOBAL of numbers":       "\x80\x04K\x01K\x02\x93.",
		"INST":                          "\x80\x02(ia\nb\n.",
		"OBJ":                           "\x80\x02(ca\nb\no.",
		"an extension":                  "\x80\x02\x82\x01.",
		"a persistent id in text":       "\x80\x02Pa\n.",
		"POP of nothing":                "\x80\x020.",
		"POP_MARK of nothing":           "\x80\x02N1.",
		"DUP of nothing":                "\x80\x022.",
		"ADDITEMS to a dict":            "\x80\x04}(K\x01\x90.",
		"a text of protocol 0":          "\x80\x02Va\n.",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewMachine([]byte(data), Inert, Limits{}).Run()
			require.Error(t, err)
		})
	}
}

func TestStackOpcodes(t *testing.T) {
	m, root := inert(t, []byte("\x80\x02K\x07\x32\x86(K\x01K\x021(0."))
	items := m.Items(root)
	require.Len(t, items, 2)
	require.EqualValues(t, 7, items[0].Int())
	require.EqualValues(t, 7, items[1].Int())
}
