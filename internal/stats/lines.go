// SPDX-License-Identifier: Apache-2.0

package stats

// Line is the line y = A + B*x. As the point (A, B) it is the corner of a polygon of lines: all
// lines that pass above or below given points form a convex one.
type Line struct{ A, B float64 }

// At returns the line's value at x.
func (l Line) At(x float64) float64 { return l.A + l.B*x }

// Box appends the corners of all lines that are from lo to hi at 0 and whose slope is at most b
// either way.
func Box(dst []Line, lo, hi, b float64) []Line {
	return append(dst, Line{lo, -b}, Line{hi, -b}, Line{hi, b}, Line{lo, b})
}

// CutAbove appends the corners of what is left of a convex polygon without the lines that pass
// below y at x. The polygon does not share memory with dst.
func CutAbove(dst, polygon []Line, x, y float64) []Line { return cut(dst, polygon, 1, x, y) }

// CutBelow appends the corners of what is left of a convex polygon without the lines that pass
// above y at x. The polygon does not share memory with dst.
func CutBelow(dst, polygon []Line, x, y float64) []Line { return cut(dst, polygon, -1, -x, -y) }

// cut keeps the lines with s*A + x*B >= c (Sutherland and Hodgman).
func cut(dst, polygon []Line, s, x, c float64) []Line {
	if len(polygon) == 0 {
		return dst
	}
	first := s*polygon[0].A + x*polygon[0].B - c
	v, dv := polygon[0], first
	for i := 1; i <= len(polygon); i++ {
		w, dw := polygon[0], first
		if i < len(polygon) {
			w = polygon[i]
			dw = s*w.A + x*w.B - c
		}
		if dv >= 0 {
			dst = append(dst, v)
		}
		if (dv >= 0) != (dw >= 0) {
			f := dv / (dv - dw)
			dst = append(dst, Line{v.A + f*(w.A-v.A), v.B + f*(w.B-v.B)})
		}
		v, dv = w, dw
	}
	return dst
}
