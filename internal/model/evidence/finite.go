// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"math"
	"reflect"
)

// finite returns a copy of a struct of evidence without numbers that JSON does not have.
func finite(e Evidence) any {
	out := reflect.New(reflect.TypeOf(e).Elem())
	out.Elem().Set(reflect.ValueOf(e).Elem())
	makeFinite(out.Elem())
	return out.Interface()
}

// makeFinite changes v, and copies of what v refers to.
func makeFinite(v reflect.Value) {
	switch v.Kind() {
	case reflect.Float64:
		if infinite(v) {
			v.SetFloat(0)
		}
	case reflect.Pointer:
		switch {
		case v.IsNil():
		case infinite(v.Elem()):
			v.SetZero()
		default:
			to := reflect.New(v.Type().Elem())
			to.Elem().Set(v.Elem())
			makeFinite(to.Elem())
			v.Set(to)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				makeFinite(v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.AppendSlice(reflect.Zero(v.Type()), v))
		for i := range v.Len() {
			makeFinite(v.Index(i))
		}
	case reflect.Map:
		to := reflect.MakeMap(v.Type())
		for entry := v.MapRange(); entry.Next(); {
			if !infinite(entry.Value()) {
				to.SetMapIndex(entry.Key(), entry.Value())
			}
		}
		v.Set(to)
	default:
	}
}

func infinite(v reflect.Value) bool {
	return v.Kind() == reflect.Float64 && (math.IsNaN(v.Float()) || math.IsInf(v.Float(), 0))
}
