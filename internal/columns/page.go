// SPDX-License-Identifier: Apache-2.0

package columns

import (
	"errors"
	"fmt"
	"hash/crc32"
)

// Numbers of page types and encodings.
const (
	pageDictionary = 2
	pageDataV2     = 3

	encodingPlain           = 0
	encodingPlainDictionary = 2
	encodingDelta           = 5
	encodingDictionary      = 8
	encodingSplit           = 9
)

// page is the header of a page.
type page struct {
	kind         int64
	uncompressed int64
	compressed   int64
	sum          int64 // CRC-32 of the bytes that follow
	summed       bool
	values       int64
	nulls        int64
	rows         int64
	encoding     int64
	definition   int64 // bytes of definition levels
	repetition   int64
	plain        bool // the data of the page are not compressed
}

// parsePage reads the header of a page, and returns how many bytes it takes.
func parsePage(b []byte) (p page, size int, err error) {
	t := &thrift{b: b}
	t.structure(func(id int16, kind byte) bool {
		switch {
		case id == 1:
			return t.number(kind, &p.kind)
		case id == 2:
			return t.number(kind, &p.uncompressed)
		case id == 3:
			return t.number(kind, &p.compressed)
		case id == 4:
			p.summed = t.number(kind, &p.sum)
			return p.summed
		case id == 7 && kind == thriftStruct:
			t.dictionaryHeader(&p)
			return true
		case id == 8 && kind == thriftStruct:
			t.dataHeader(&p)
			return true
		}
		return false
	})
	if t.err != nil {
		return p, 0, fmt.Errorf("read header of page: %w", t.err)
	}
	return p, t.at, nil
}

func (t *thrift) dictionaryHeader(p *page) {
	t.structure(func(id int16, kind byte) bool {
		switch id {
		case 1:
			return t.number(kind, &p.values)
		case 2:
			return t.number(kind, &p.encoding)
		}
		return false
	})
}

func (t *thrift) dataHeader(p *page) {
	t.structure(func(id int16, kind byte) bool {
		switch id {
		case 1:
			return t.number(kind, &p.values)
		case 2:
			return t.number(kind, &p.nulls)
		case 3:
			return t.number(kind, &p.rows)
		case 4:
			return t.number(kind, &p.encoding)
		case 5:
			return t.number(kind, &p.definition)
		case 6:
			return t.number(kind, &p.repetition)
		case 7:
			p.plain = kind == thriftFalse
			return kind == thriftTrue || kind == thriftFalse
		}
		return false
	})
}

// pages are those of a column of a row group.
type pages struct {
	b      []byte
	codec  int64
	unzip  func(b []byte, size int64) ([]byte, error)
	budget *int64 // bytes that the row group may still unfold to
}

// next returns the header and the bytes of the next page, its levels apart; false at the end.
func (p *pages) next() (h page, levels, data []byte, ok bool, err error) {
	if len(p.b) == 0 {
		return h, nil, nil, false, nil
	}
	h, size, err := parsePage(p.b)
	if err != nil {
		return h, nil, nil, false, err
	}
	rest := p.b[size:]
	if h.compressed < 0 || h.compressed > int64(len(rest)) || h.uncompressed < 0 {
		return h, nil, nil, false, fmt.Errorf("got a page of %d bytes; want at most the %d that follow", h.compressed, len(rest))
	}
	body := rest[:h.compressed]
	p.b = rest[h.compressed:]
	if h.summed && crc32.ChecksumIEEE(body) != uint32(h.sum) {
		return h, nil, nil, false, errors.New("got a page that differs from its checksum: the file is damaged")
	}
	levels, data, err = p.body(&h, body)
	return h, levels, data, err == nil, err
}

// body returns the levels and the uncompressed data of a page.
func (p *pages) body(h *page, b []byte) (levels, data []byte, err error) {
	if h.kind == pageDataV2 {
		if h.repetition != 0 || h.definition < 0 || h.definition > int64(len(b)) {
			return nil, nil, fmt.Errorf("got levels of %d and %d bytes; want none and at most %d", h.repetition, h.definition, len(b))
		}
		levels, b = b[:h.definition], b[h.definition:]
	}
	size := h.uncompressed - int64(len(levels))
	if size < 0 || size > *p.budget {
		return nil, nil, fmt.Errorf("got pages that unfold to more than %d bytes; want at most that in a row group", int64(maxUnfolded))
	}
	*p.budget -= size
	if h.plain || p.codec == codecNone || len(b) == 0 {
		if int64(len(b)) != size {
			return nil, nil, fmt.Errorf("got a page of %d bytes; want %d", len(b), size)
		}
		return levels, b, nil
	}
	data, err = p.unzip(b, size)
	return levels, data, err
}
