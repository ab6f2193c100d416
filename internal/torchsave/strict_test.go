// SPDX-License-Identifier: Apache-2.0

package torchsave

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/pickle"
)

// look does all that a save is looked at for; it returns the first error.
func look(b []byte) error {
	f, err := openBytes(b)
	if err != nil {
		return err
	}
	if _, _, err := f.Value(pickle.Limits{}); err != nil {
		return err
	}
	if err := f.Lost(); err != nil {
		return err
	}
	_, err = f.Verify()
	return err
}

// layout is where the directory of a file of torch.save lies, which has an end of zip64 always.
func layout(tb testing.TB, b []byte) (entries []int, end64, locator, end int) {
	tb.Helper()
	end = len(b) - endLen
	locator, end64 = end-endLocator64, end-endLocator64-end64Len
	require.Equal(tb, "PK\x06\x06", string(b[end64:end64+4]))
	for at := int(binary.LittleEndian.Uint32(b[end+16:])); at < end64; {
		entries = append(entries, at)
		at += entryLen + int(binary.LittleEndian.Uint16(b[at+28:])) + int(binary.LittleEndian.Uint16(b[at+30:]))
	}
	return entries, end64, locator, end
}

// TestEveryBitOfADirectory: what a reader of zip files needs is held against what lies at the data, so
// that one bit of it that was changed is told; what says only which program made a file and when (APPNOTE.TXT,
// 4.4.2, 4.4.3, 4.4.6, 4.4.14, 4.4.15) may be anything, but for the bit that makes a folder of a record.
func TestEveryBitOfADirectory(t *testing.T) {
	whole := golden(t, "megatron.pt")
	require.NoError(t, look(whole))
	entries, end64, _, _ := layout(t, whole)
	free := map[int]byte{} // bits of the byte
	field := func(at, n int) {
		for i := range n {
			free[at+i] = 0xff
		}
	}
	for _, at := range entries {
		field(at+4, 4)  // versions, of who made it and to read it
		field(at+12, 4) // time and date
		field(at+36, 6) // attributes
		if binary.LittleEndian.Uint32(whole[at+24:]) > 0 {
			free[at+38] &^= attrFolder
		}
	}
	field(end64+12, 4) // versions
	for at := entries[0]; at < len(whole); at++ {
		for bit := range 8 {
			b := bytes.Clone(whole)
			b[at] ^= 1 << bit
			if err := look(b); free[at]>>bit&1 == 1 {
				require.NoError(t, err, "bit %d at %d", bit, at-entries[0])
			} else {
				require.Error(t, err, "bit %d at %d", bit, at-entries[0])
			}
		}
	}
}

// What no reader of torch takes is refused also where the directory and the record say the same.
func TestRecordsThatTorchDoesNotRead(t *testing.T) {
	whole := golden(t, "megatron.pt")
	entries, end64, locator, end := layout(t, whole)
	le := binary.LittleEndian
	both := func(entry, local int, value uint16) func([]byte) {
		return func(b []byte) {
			at := entries[len(entries)-2]
			le.PutUint16(b[at+entry:], le.Uint16(b[at+entry:])|value)
			at = int(le.Uint32(b[at+42:]))
			le.PutUint16(b[at+local:], le.Uint16(b[at+local:])|value)
		}
	}
	for name, change := range map[string]func(b []byte){
		"encrypted":                both(8, 6, 1),
		"a patch":                  both(8, 6, 1<<5),
		"strongly encrypted":       both(8, 6, 1<<6),
		"a masked directory":       both(8, 6, 1<<13),
		"bzip2":                    both(10, 8, 12),
		"a folder":                 func(b []byte) { b[entries[0]+38] |= 1 << 4 },
		"another size of zip64":    func(b []byte) { b[end64+40]++ },
		"more disks":               func(b []byte) { b[locator+16] = 2 },
		"a locator to elsewhere":   func(b []byte) { b[locator+8]-- },
		"records on another disk":  func(b []byte) { b[end64+24]--; b[end+8]-- },
		"fewer records than there": func(b []byte) { b[end64+24]--; b[end64+32]--; b[end+8]--; b[end+10]-- },
		"a comment that is short":  func(b []byte) { b[end+20] = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			b := bytes.Clone(whole)
			change(b)
			require.Error(t, look(b))
		})
	}
	require.NoError(t, look(whole))
}

type record struct {
	name, data string
}

// stored makes a zip file of records in order.
func stored(tb testing.TB, offset int64, records ...record) []byte {
	tb.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	z.SetOffset(offset)
	for _, r := range records {
		w, err := z.CreateHeader(&zip.FileHeader{Name: r.name})
		require.NoError(tb, err)
		_, err = io.WriteString(w, r.data)
		require.NoError(tb, err)
	}
	require.NoError(tb, z.Close())
	return b.Bytes()
}

func TestNamesOfRecords(t *testing.T) {
	root, version, zero := record{"a/data.pkl", "\x80\x02N."}, record{"a/version", "3\n"}, record{"a/data/0", "0000"}
	require.NoError(t, look(stored(t, 0, root, zero, version)))
	require.NoError(t, look(stored(t, 0, root, record{"a/.data/version", "3\n"})))
	require.ErrorContains(t, look(stored(t, 0, root, zero, zero, version)), "got two of the name; want one")
	require.ErrorContains(t, look(stored(t, 0, root, zero)), "got no record version; want it")
	require.ErrorContains(t, look(stored(t, 0, record{"b/x", ""}, root, version)), `got "b/x" first; want a record of "a"`)
}

// far is a file with zeros before off.
type far struct {
	b   []byte
	off int64
}

func (f far) ReadAt(p []byte, off int64) (int, error) {
	skip := min(max(f.off-off, 0), int64(len(p)))
	clear(p[:skip])
	if skip == int64(len(p)) {
		return len(p), nil
	}
	n, err := bytes.NewReader(f.b).ReadAt(p[skip:], off+skip-f.off)
	return int(skip) + n, err
}

// Records beyond 4 GiB have where they begin in the field of zip64.
func TestDirectoryBeyond4GiB(t *testing.T) {
	const off = 5 << 30
	b := stored(t, off, record{"a/data.pkl", "\x80\x02N."}, record{"a/data/0", "0000"}, record{"a/version", "3\n"})
	f, err := Open(far{b, off}, off+int64(len(b)))
	require.NoError(t, err)
	_, err = f.Verify()
	require.NoError(t, err)
	at := bytes.LastIndex(b, []byte("a/version")) + len("a/version") + 4 // the field's offset
	require.EqualValues(t, off, binary.LittleEndian.Uint64(b[at+16:])&^0xffff, "behind the sizes, as Go writes it")
	b[at+16]++
	f, err = Open(far{b, off}, off+int64(len(b)))
	require.NoError(t, err)
	_, err = f.Verify()
	require.ErrorContains(t, err, "got no header")
}

// without writes a file anew, but for one record.
func without(tb testing.TB, b []byte, name string) []byte {
	tb.Helper()
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	require.NoError(tb, err)
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, e := range z.File {
		if e.Name != name {
			require.NoError(tb, w.Copy(e))
		}
	}
	require.NoError(tb, w.Close())
	return out.Bytes()
}

// TestEveryStorageIsThere: testdata/make.py saves a model and its optimizer, all of whose storages the
// pickle names.
func TestEveryStorageIsThere(t *testing.T) {
	whole := golden(t, "megatron.pt")
	z, err := zip.NewReader(bytes.NewReader(whole), int64(len(whole)))
	require.NoError(t, err)
	n := 0
	for _, e := range z.File {
		if ok, _ := path.Match("megatron/data/*", e.Name); !ok {
			continue
		}
		n++
		f, err := openBytes(without(t, whole, e.Name))
		require.NoError(t, err)
		_, _, err = f.Value(pickle.Limits{})
		require.NoError(t, err)
		require.ErrorContains(t, f.Lost(), "got none; want the storage that the pickle names", e.Name)
		require.Error(t, f.Storages(pickle.Limits{}))
		require.NoError(t, f.Storages(pickle.Limits{Bytes: 16}), "of what is not read nothing is known")
	}
	require.Equal(t, 8, n, "weight and bias, and of each a step and two averages")
	require.NoError(t, look(without(t, whole, "nothing")))
}

// TestStoragesHaveTheirElements: the widths are those of the types of torch.
func TestStoragesHaveTheirElements(t *testing.T) {
	text := func(s string) string { return "X" + string([]byte{byte(len(s)), 0, 0, 0}) + s }
	id := func(class string, elements int) string {
		n := string(binary.LittleEndian.AppendUint64([]byte("\x8a\x08"), uint64(elements)))
		return "\x80\x02(" + text("storage") + "c" + class + "\n" + text("0") + text("cpu") + n + "tQ."
	}
	lost := func(class string, elements int, data ...string) error {
		records := []record{{"a/data.pkl", id(class, elements)}}
		for _, d := range data {
			records = append(records, record{"a/data/0", d})
		}
		f, err := openBytes(stored(t, 0, records...))
		require.NoError(t, err)
		_, _, err = f.Value(pickle.Limits{})
		require.NoError(t, err)
		return f.Lost()
	}
	for class, width := range map[string]int{
		"torch\nDoubleStorage": 8, "torch\nFloatStorage": 4, "torch\nHalfStorage": 2, "torch\nBFloat16Storage": 2, "torch\nLongStorage": 8,
		"torch\nIntStorage": 4, "torch\nShortStorage": 2, "torch\nCharStorage": 1, "torch\nByteStorage": 1, "torch\nBoolStorage": 1,
		"torch\nComplexFloatStorage": 8, "torch\nComplexDoubleStorage": 16, "torch.storage\nUntypedStorage": 1,
	} {
		require.NoError(t, lost(class, 3, string(make([]byte, 3*width))), class)
		require.Error(t, lost(class, 3, string(make([]byte, 3*width-1))), class)
		require.NoError(t, lost(class, 0, ""), class)
		require.Error(t, lost(class, 0), "torch.load wants the record of an empty tensor, too")
		require.Error(t, lost(class, -1, "0000"), class)
		if width > 1 {
			require.Error(t, lost(class, 1<<62, "0000"), class)
		}
	}
	require.NoError(t, lost("torch\nOtherStorage", 1000, ""), "nobody knows how wide its elements are")
	require.Error(t, lost("torch\nOtherStorage", 1000))

	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, r := range []struct {
		record
		method uint16
	}{{record{"a/data.pkl", id("torch\nFloatStorage", 1)}, zip.Store}, {record{"a/data/0", "0000"}, 12}} {
		w, err := z.CreateRaw(&zip.FileHeader{
			Name: r.name, Method: r.method, CRC32: crc32.ChecksumIEEE([]byte(r.data)),
			CompressedSize64: uint64(len(r.data)), UncompressedSize64: uint64(len(r.data)),
		})
		require.NoError(t, err)
		_, err = io.WriteString(w, r.data)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	f, err := openBytes(b.Bytes())
	require.NoError(t, err)
	require.ErrorContains(t, f.Storages(pickle.Limits{}), "got compression method 12; want 0 or 8")
}
