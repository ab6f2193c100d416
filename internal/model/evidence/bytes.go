// SPDX-License-Identifier: Apache-2.0

package evidence

import "reflect"

// Bytes estimates the memory that evidence takes, beside the interface value that refers to it.
func Bytes(e Evidence) int {
	switch e := e.(type) {
	case nil:
		return 0
	case Text:
		return len(e)
	}
	return held(reflect.ValueOf(e))
}

// held returns the bytes of what a value refers to.
func held(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Pointer:
		if !v.IsNil() {
			n = int(v.Type().Elem().Size()) + held(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			n += held(v.Field(i))
		}
	case reflect.Slice:
		n = v.Cap() * int(v.Type().Elem().Size())
		for i := range v.Len() {
			n += held(v.Index(i))
		}
	case reflect.Map:
		for entry := v.MapRange(); entry.Next(); {
			n += int(v.Type().Key().Size()+v.Type().Elem().Size()) + held(entry.Key()) + held(entry.Value())
		}
	default:
	}
	return n
}
