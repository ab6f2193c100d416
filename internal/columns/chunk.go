// SPDX-License-Identifier: Apache-2.0

package columns

import (
	"errors"
	"fmt"
)

// cells are values of a column: integers, doubles or texts.
type cells struct {
	ints    []int64
	doubles []float64
	texts   []string
}

func (c *cells) at(i int) value {
	switch {
	case c.ints != nil:
		return value{i: c.ints[i], ok: true}
	case c.doubles != nil:
		return value{f: c.doubles[i], ok: true}
	}
	return value{s: c.texts[i], ok: true}
}

func (c *cells) len() int { return max(len(c.ints), len(c.doubles), len(c.texts)) }

// read decodes the pages of a column, and sets its values in the rows.
func (c *column) read(p *pages, rows []row) error {
	var dictionary *cells
	at := 0
	for {
		h, levels, data, ok, err := p.next()
		switch {
		case err != nil:
			return err
		case !ok && at < len(rows):
			return fmt.Errorf("got %d rows; want %d", at, len(rows))
		case !ok:
			return nil
		case h.kind == pageDictionary && dictionary == nil && at == 0:
			if dictionary, err = c.dictionary(&h, data); err != nil {
				return err
			}
		case h.kind == pageDataV2:
			n, err := c.page(&h, levels, data, dictionary, rows[at:])
			if err != nil {
				return err
			}
			at += n
		default:
			return fmt.Errorf("got a page of type %d; want a dictionary and then data pages of version 2", h.kind)
		}
	}
}

// dictionary decodes a page of the values that others name by their index.
func (c *column) dictionary(h *page, data []byte) (*cells, error) {
	if h.values < 0 || h.values > MaxGroupRows {
		return nil, fmt.Errorf("got a dictionary of %d values; want at most %d", h.values, MaxGroupRows)
	}
	if h.encoding != encodingPlain && h.encoding != encodingPlainDictionary {
		return nil, fmt.Errorf("got a dictionary of encoding %d; want %d", h.encoding, encodingPlain)
	}
	return c.plain(data, int(h.values))
}

// page decodes a page of data, and returns how many rows it has.
func (c *column) page(h *page, levels, data []byte, dictionary *cells, rows []row) (int, error) {
	if h.rows != h.values || h.values < 1 || h.values > int64(len(rows)) {
		return 0, fmt.Errorf("got a page of %d values and %d rows; want 1 to %d of both", h.values, h.rows, len(rows))
	}
	n := int(h.values)
	there, count, err := c.presence(levels, n)
	if err != nil {
		return 0, err
	}
	if int64(n-count) != h.nulls {
		return 0, fmt.Errorf("got %d values that are absent; want %d", n-count, h.nulls)
	}
	if count == 0 {
		return n, nil
	}
	found, indexes, err := c.values(h, data, dictionary, count)
	if err != nil {
		return 0, err
	}
	next := 0
	for i := range n {
		if !c.required && there[i] == 0 {
			continue
		}
		k := next
		if indexes != nil {
			k = int(indexes[next])
		}
		c.set(&rows[i], found.at(k))
		next++
	}
	return n, nil
}

// presence returns which of n values are there, nil for all, and how many are.
func (c *column) presence(levels []byte, n int) (there []uint32, count int, err error) {
	if c.required {
		return nil, n, nil
	}
	if there, err = decodeHybrid(levels, 1, n); err != nil {
		return nil, 0, fmt.Errorf("read levels: %w", err)
	}
	for _, t := range there {
		count += int(t)
	}
	return there, count, nil
}

// values decodes n values, or the indexes at which the dictionary has them.
func (c *column) values(h *page, data []byte, dictionary *cells, n int) (found *cells, indexes []uint32, err error) {
	switch {
	case h.encoding == encodingDictionary || h.encoding == encodingPlainDictionary:
		if dictionary == nil {
			return nil, nil, errors.New("got indexes without a dictionary")
		}
		indexes, err = indexesOf(data, dictionary.len(), n)
		return dictionary, indexes, err
	case h.encoding == encodingDelta && c.physical() == typeInt64:
		ints, err := decodeDelta(data, n)
		return &cells{ints: ints}, nil, err
	case h.encoding == encodingSplit && c.kind == double:
		doubles, err := decodeDoubles(data, n)
		return &cells{doubles: doubles}, nil, err
	case h.encoding == encodingPlain && c.kind != double:
		found, err = c.plain(data, n)
		return found, nil, err
	}
	return nil, nil, fmt.Errorf("got encoding %d; want one that the format has for this column", h.encoding)
}

// indexesOf decodes n indexes of a dictionary.
func indexesOf(b []byte, entries, n int) ([]uint32, error) {
	if len(b) == 0 {
		return nil, errShort
	}
	indexes, err := decodeHybrid(b[1:], int(b[0]), n)
	if err != nil {
		return nil, err
	}
	for _, i := range indexes {
		if int64(i) >= int64(entries) {
			return nil, fmt.Errorf("got index %d of a dictionary of %d values", i, entries)
		}
	}
	return indexes, nil
}

// plain decodes n values one behind the other.
func (c *column) plain(b []byte, n int) (found *cells, err error) {
	found = &cells{}
	switch c.physical() {
	case typeInt64:
		found.ints, err = decodeIntegers(b, n)
	case typeBoolean:
		found.ints, err = decodeFlags(b, n)
	case typeByteArray:
		found.texts, err = decodeTexts(b, n, c.limit)
	default:
		err = errors.New("got doubles in an encoding that the format does not have")
	}
	return found, err
}
