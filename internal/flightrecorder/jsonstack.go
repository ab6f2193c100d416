// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import "encoding/binary"

// stack reads the frames of an entry, which PyTorch leaves out of JSON and programs that turn
// pickles into JSON do not, and returns the number of the call stack.
func (r *jsonReader) stack() (int32, error) {
	if r.s.peek() != '[' {
		_, err := r.s.skip()
		return 0, err
	}
	var frames []Frame
	key := r.scratch[:0]
	err := r.s.list(func() error {
		r.d.Stacks = true
		if !r.o.Stacks || len(frames) >= maxRecorded || r.s.peek() != '{' {
			_, err := r.s.skip()
			return err
		}
		f, name, file, err := r.frame()
		frames = append(frames, f)
		key = binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(key, int64(name)), int64(file)), f.Line)
		return err
	})
	r.scratch = key
	if err != nil || len(frames) == 0 {
		return 0, err
	}
	if n, ok := r.stackOf[string(key)]; ok {
		return n, nil
	}
	return r.addStack(key, frames), nil
}

// frame reads one frame, and returns the numbers of its texts.
func (r *jsonReader) frame() (f Frame, name, file int32, err error) {
	err = r.s.object(func(k []byte) error {
		v, err := r.s.field()
		if err != nil {
			return err
		}
		switch keyOf(k) {
		case keyName:
			name = r.textField(v)
		case keyFilename:
			file = r.textField(v)
		case keyLine:
			r.set(&f.Line, v)
		}
		return nil
	})
	f.Name, f.File = r.d.texts[name], r.d.texts[file]
	return f, name, file, err
}
