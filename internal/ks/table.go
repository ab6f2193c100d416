// SPDX-License-Identifier: Apache-2.0

package ks

// Full is what a share of 1 is stored as. With 14 bits a cell, four cells of a word
// can be subtracted at once, with room for a carry in each.
const Full = 1<<14 - 1

const (
	cellBits = 16
	perWord  = 64 / cellBits
	// each holds a 1 in every cell of a word, carry the highest bit of every cell.
	each  = uint64(0x0001_0001_0001_0001)
	carry = each << (cellBits - 1)
)

// Table holds the rhythm of workers, a row for each. The zero value is not usable.
type Table struct {
	windows int
	words   int // of a row
	cells   []uint64
	scale   float64 // distance that a difference of Full stands for
}

// NewTable returns an empty table of rows of so many windows, at least one.
func NewTable(windows int) *Table {
	windows = max(windows, 1)
	return &Table{windows: windows, words: (windows + perWord - 1) / perWord, scale: 1}
}

// Normalised makes a table of counts, worker after worker, windows of each. A
// worker's cells are shares of its own operations, in steps of 1/Full; one without
// operations has none in any window.
func Normalised(counts []uint32, windows int) *Table {
	t := tableFor(counts, windows)
	for i := 0; i+t.windows <= len(counts); i += t.windows {
		row := counts[i : i+t.windows]
		t.add(row, sum(row))
	}
	return t
}

// Counted makes a table of the counts themselves, as KAIR has it: all workers are
// scaled by the one with most operations, and a worker with fewer stays apart from
// one with more. Distances are numbers of operations.
func Counted(counts []uint32, windows int) *Table {
	t := tableFor(counts, windows)
	var most uint64
	for i := 0; i+t.windows <= len(counts); i += t.windows {
		most = max(most, sum(counts[i:i+t.windows]))
	}
	t.scale = float64(most)
	for i := 0; i+t.windows <= len(counts); i += t.windows {
		t.add(counts[i:i+t.windows], most)
	}
	return t
}

// tableFor returns an empty table with room for the workers of counts.
func tableFor(counts []uint32, windows int) *Table {
	t := NewTable(windows)
	t.cells = make([]uint64, 0, len(counts)/t.windows*t.words)
	return t
}

func sum(counts []uint32) (s uint64) {
	for _, n := range counts {
		s += uint64(n)
	}
	return s
}

// add appends a worker; total is what counts as a share of 1.
func (t *Table) add(counts []uint32, total uint64) {
	per := 0.0
	if total > 0 {
		per = Full / float64(total)
	}
	var cum, share uint64
	for len(counts) > 0 {
		word := uint64(0)
		here := counts[:min(perWord, len(counts))]
		for i, n := range here {
			if n != 0 {
				cum += uint64(n)
				share = uint64(float64(float64(cum)*per) + 0.5)
			}
			word |= share << (i * cellBits)
		}
		t.cells = append(t.cells, word)
		counts = counts[len(here):]
	}
}

// Workers returns how many rows there are.
func (t *Table) Workers() int { return len(t.cells) / t.words }

// Windows returns how many cells a row has.
func (t *Table) Windows() int { return t.windows }

// Share returns what share of a worker's operations was over by the end of a window;
// of a Counted table how many.
func (t *Table) Share(worker, window int) float64 {
	return t.value(uint64(cell(t.row(worker), window)))
}

// Distance returns the largest difference of two workers over the windows.
func (t *Table) Distance(a, b int) float64 { return t.value(distance(t.row(a), t.row(b), 0)) }

func (t *Table) row(i int) []uint64 { return t.cells[i*t.words : (i+1)*t.words] }

// value returns what a difference of cells stands for.
func (t *Table) value(d uint64) float64 { return float64(d) / Full * t.scale }

// mean returns the score that a sum of distances from all other workers stands for.
func (t *Table) mean(sum uint64) float64 {
	if others := t.Workers() - 1; others > 0 {
		return t.value(sum) / float64(others)
	}
	return 0
}

func cell(row []uint64, window int) uint16 {
	return uint16(row[window/perWord] >> (window % perWord * cellBits))
}
