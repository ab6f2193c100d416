// SPDX-License-Identifier: Apache-2.0

package ckptsim

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"strconv"
)

// tensor is a tensor of 32-bit floats in one dimension.
type tensor []float32

// weights are the numbers of a tensor; those of another epoch or name are others.
func weights(n int, epoch int64, name string) tensor {
	t := make(tensor, n)
	x := crc32.ChecksumIEEE(fmt.Appendf(nil, "%s at %d", name, epoch)) | 1
	for i := range t {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		t[i] = float32(x%20000)/10000 - 1 + 1e-5 // never a 0, which a hole reads as
	}
	return t
}

func (t tensor) bytes() []byte {
	b := make([]byte, 0, 4*len(t))
	for _, v := range t {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// torchSaved is a value with tensors in it as torch.save writes it since PyTorch 1.6.
func torchSaved(v any) []byte {
	w := &torchWriter{}
	data := pickled(w.replace(v), 2)
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	add := func(name string, data []byte) {
		e, err := z.CreateRaw(&zip.FileHeader{
			Name: "archive/" + name, Method: zip.Store, CRC32: crc32.ChecksumIEEE(data),
			CompressedSize64: uint64(len(data)), UncompressedSize64: uint64(len(data)),
		})
		if err == nil {
			_, err = e.Write(data)
		}
		if err != nil {
			panic(err) // a bytes.Buffer takes everything
		}
	}
	add("data.pkl", data)
	add(".format_version", []byte("1"))
	add("byteorder", []byte("little"))
	for i, t := range w.storages {
		add(fmt.Sprintf("data/%d", i), t.bytes())
	}
	add("version", []byte("3\n"))
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

type torchWriter struct{ storages []tensor }

// replace puts what torch.save writes for a tensor in its place.
func (w *torchWriter) replace(v any) any {
	switch v := v.(type) {
	case tensor:
		id := strconv.Itoa(len(w.storages))
		w.storages = append(w.storages, v)
		n := len(v)
		return call{global{"torch._utils", "_rebuild_tensor_v2"}, tuple{
			persistent{tuple{"storage", global{"torch", "FloatStorage"}, id, "cpu", n}},
			0,
			tuple{n},
			tuple{1},
			false,
			call{global{"collections", "OrderedDict"}, tuple{}},
		}}
	case dict:
		return dict(w.replaceAll(v))
	case list:
		return list(w.replaceAll(v))
	case tuple:
		return tuple(w.replaceAll(v))
	case object:
		return object{v.of, w.replace(v.state)}
	}
	return v
}

func (w *torchWriter) replaceAll(vs []any) []any {
	out := make([]any, len(vs))
	for i, v := range vs {
		out[i] = w.replace(v)
	}
	return out
}

// adam is the state of an optimizer, whose parameters count their steps in a tensor.
func adam(epoch int64, name string, steps int64) dict {
	param := func(i int) dict {
		return dict{"step", tensor{float32(steps)}, "exp_avg", weights(24, epoch, fmt.Sprint(name, ".m", i)), "exp_avg_sq", weights(24, epoch, fmt.Sprint(name, ".v", i))}
	}
	return dict{
		"state",
		dict{0, param(0), 1, param(1)},
		"param_groups",
		list{dict{"lr", 0.001, "betas", tuple{0.9, 0.999}, "eps", 1e-8, "params", list{0, 1}}},
	}
}
