// SPDX-License-Identifier: Apache-2.0

package torchsave

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/pickle"
)

func openBytes(b []byte) (*File, error) { return Open(bytes.NewReader(b), int64(len(b))) }

func golden(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(tb, err)
	return b
}

// TestRealFile: testdata/make.py says what the file holds: three steps of AdamW, and the
// iteration in two places.
func TestRealFile(t *testing.T) {
	f, err := openBytes(golden(t, "megatron.pt"))
	require.NoError(t, err)
	m, root, err := f.Value(pickle.Limits{})
	require.NoError(t, err)
	iteration, ok := m.Get(root, "iteration")
	require.True(t, ok)
	n, ok := f.Number(m, iteration)
	require.True(t, ok)
	require.EqualValues(t, 1000, n)
	args, ok := m.Get(root, "args")
	require.True(t, ok)
	require.True(t, m.Is(args, "argparse", "Namespace"))
	tp, ok := m.Get(args, "tensor_model_parallel_size")
	require.True(t, ok)
	require.EqualValues(t, 2, tp.Int())

	optimizer, _ := m.Get(root, "optimizer")
	state, _ := m.Get(optimizer, "state")
	of := m.Items(state)
	require.Len(t, of, 4)
	step, ok := m.Get(of[1], "step")
	require.True(t, ok)
	n, ok = f.Number(m, step)
	require.True(t, ok)
	require.EqualValues(t, 3, n)
	average, _ := m.Get(of[1], "exp_avg")
	_, ok = f.Number(m, average)
	require.False(t, ok, "a tensor of several elements is no number")
	unchecked, err := f.Verify()
	require.NoError(t, err)
	require.Zero(t, unchecked)
}

func TestFileWithoutChecksums(t *testing.T) {
	f, err := openBytes(golden(t, "nocrc.pt"))
	require.NoError(t, err)
	m, root, err := f.Value(pickle.Limits{})
	require.NoError(t, err)
	v, _ := m.Get(root, "iteration")
	require.EqualValues(t, 1000, v.Int())
	unchecked, err := f.Verify()
	require.NoError(t, err)
	require.Equal(t, 7, unchecked, "its seven records")
}

func TestLegacyFile(t *testing.T) {
	_, err := openBytes(golden(t, "legacy.pt"))
	require.ErrorIs(t, err, ErrLegacy)
}

// TestNoPartOfAFilePasses: a file that was cut anywhere is told to be torn, and every changed
// byte of a record by Verify.
func TestNoPartOfAFilePasses(t *testing.T) {
	whole := golden(t, "megatron.pt")
	for n := range whole {
		_, err := openBytes(whole[:n])
		require.Error(t, err, "cut at %d of %d", n, len(whole))
	}
	z, err := zip.NewReader(bytes.NewReader(whole), int64(len(whole)))
	require.NoError(t, err)
	for _, e := range z.File {
		at, err := e.DataOffset()
		require.NoError(t, err)
		damaged := bytes.Clone(whole)
		damaged[at] ^= 0xff
		f, err := openBytes(damaged)
		require.NoError(t, err)
		_, err = f.Verify()
		require.ErrorIs(t, err, zip.ErrChecksum, e.Name)
		if e.Name == "megatron/data.pkl" {
			_, _, err = f.Value(pickle.Limits{})
			require.ErrorIs(t, err, zip.ErrChecksum)
		}
	}
}

// archive makes a zip file of records as torch.save does: stored, not compressed.
func archive(tb testing.TB, records map[string]string, method uint16) []byte {
	tb.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, data := range records {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		require.NoError(tb, err)
		_, err = io.WriteString(w, data)
		require.NoError(tb, err)
	}
	require.NoError(tb, z.Close())
	return b.Bytes()
}

func TestWhatIsNoFileOfTorch(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing":               nil,
		"text":                  []byte("1000"),
		"zeros":                 make([]byte, 4096),
		"another zip":           archive(t, map[string]string{"a/b": "x"}, zip.Store),
		"two values":            archive(t, map[string]string{"a/data.pkl": "\x80\x02N.", "b/data.pkl": "\x80\x02N."}, zip.Store),
		"a directory elsewhere": []byte("PK\x05\x06\x00\x00\x00\x00\x01\x00\x01\x00\xff\xff\xff\x7f\xff\xff\xff\x7f\x00\x00"),
		"zip64 without an end": append(make([]byte, 40),
			[]byte("PK\x06\x07\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\x7f\x01\x00\x00\x00PK\x05\x06\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00")...),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openBytes(b)
			require.Error(t, err)
		})
	}
}

// TestZipBomb: a record that unpacks to more than the limit costs the limit.
func TestZipBomb(t *testing.T) {
	b := archive(t, map[string]string{"a/data.pkl": string(make([]byte, 1<<20))}, zip.Deflate)
	f, err := openBytes(b)
	require.NoError(t, err)
	_, _, err = f.Value(pickle.Limits{Bytes: 1 << 16})
	require.ErrorContains(t, err, "want at most 65536")
	require.ErrorIs(t, err, ErrLimit)
}

// A number may be a view into a storage of any size, of which nothing else is read.
func TestNumberInALargeStorage(t *testing.T) {
	const elements, at = 1 << 16, 1<<16 - 2
	storage := make([]byte, 4*elements)
	binary.LittleEndian.PutUint32(storage[4*at:], math.Float32bits(1000))
	text := func(s string) string { return "X" + string([]byte{byte(len(s)), 0, 0, 0}) + s }
	whole := func(n int) string { return "J" + string(binary.LittleEndian.AppendUint32(nil, uint32(n))) }
	view := "\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "ctorch\nFloatStorage\n" + text("0") + text("cpu") + whole(elements) + "tQ" + whole(at) + ")tR."
	number := func(data string, method uint16) (n int64, ok bool, read int64, err error) {
		b := archive(t, map[string]string{"a/data.pkl": view, "a/data/0": data}, method)
		r := &counted{ReaderAt: bytes.NewReader(b)}
		f, err := Open(r, int64(len(b)))
		require.NoError(t, err)
		m, root, err := f.Value(pickle.Limits{})
		require.NoError(t, err)
		before := r.n
		n, ok = f.Number(m, root)
		return n, ok, r.n - before, f.Err()
	}
	n, ok, read, err := number(string(storage), zip.Store)
	require.NoError(t, err)
	require.True(t, ok)
	require.EqualValues(t, 1000, n)
	require.Less(t, read, int64(100))
	_, ok, _, err = number(string(storage[:4*at]), zip.Store)
	require.False(t, ok)
	require.ErrorContains(t, err, "read record data/0: got 262136 bytes; want at least 262140")
	_, ok, _, err = number(string(storage), zip.Deflate)
	require.False(t, ok)
	require.ErrorIs(t, err, ErrLimit)
}

// counted counts what is read.
type counted struct {
	io.ReaderAt
	n int64
}

func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, off)
	c.n += int64(n)
	return n, err
}

func TestHostilePickleIsADescription(t *testing.T) {
	f, err := openBytes(archive(t, map[string]string{"a/data.pkl": "\x80\x02cposix\nsystem\nX\x02\x00\x00\x00id\x85R."}, zip.Store))
	require.NoError(t, err)
	m, root, err := f.Value(pickle.Limits{})
	require.NoError(t, err)
	require.True(t, m.Is(root, "posix", "system"))
}

func FuzzOpen(f *testing.F) {
	f.Add(golden(f, "megatron.pt"))
	f.Add(golden(f, "nocrc.pt"))
	f.Add(golden(f, "legacy.pt"))
	f.Add(archive(f, map[string]string{"a/data.pkl": "\x80\x02N."}, zip.Deflate))
	f.Fuzz(func(_ *testing.T, b []byte) {
		file, err := openBytes(b)
		if err != nil {
			return
		}
		_ = file.checkDirectory()
		l := pickle.Limits{Bytes: 1 << 16, Text: 1 << 12, Stack: 1 << 10, Memo: 1 << 10, Values: 1 << 12}
		m, root, err := file.Value(l)
		if err != nil {
			return
		}
		for _, v := range m.Items(root) {
			file.Number(m, v)
		}
	})
}

// BenchmarkEpochOf400MB opens a file of 24 tensors of 16 MiB and reads its iteration.
func BenchmarkEpochOf400MB(b *testing.B) {
	const tensors, size = 24, 16 << 20
	name := filepath.Join(b.TempDir(), "shard.pt")
	out, err := os.Create(name)
	require.NoError(b, err)
	z := zip.NewWriter(out)
	w, err := z.CreateHeader(&zip.FileHeader{Name: "shard/data.pkl"})
	require.NoError(b, err)
	_, err = io.WriteString(w, "\x80\x02}X\x09\x00\x00\x00iterationM\xe8\x03s.")
	require.NoError(b, err)
	zeros := make([]byte, size)
	sum := crc32.ChecksumIEEE(zeros)
	for i := range tensors {
		w, err := z.CreateRaw(&zip.FileHeader{Name: fmt.Sprintf("shard/data/%d", i), CRC32: sum, CompressedSize64: size, UncompressedSize64: size})
		require.NoError(b, err)
		_, err = w.Write(zeros)
		require.NoError(b, err)
	}
	require.NoError(b, z.Close())
	require.NoError(b, out.Close())
	b.ResetTimer()
	for b.Loop() {
		in, err := os.Open(name)
		require.NoError(b, err)
		info, err := in.Stat()
		require.NoError(b, err)
		f, err := Open(in, info.Size())
		require.NoError(b, err)
		m, root, err := f.Value(pickle.Limits{})
		require.NoError(b, err)
		v, ok := m.Get(root, "iteration")
		require.True(b, ok)
		require.EqualValues(b, 1000, v.Int())
		require.NoError(b, in.Close())
	}
}
