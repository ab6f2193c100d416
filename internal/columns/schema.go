// SPDX-License-Identifier: Apache-2.0

package columns

import (
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
)

// ordered is a group that has its fields in the order of the table; parquet.Group sorts them by name.
type ordered struct {
	parquet.Group
	fields []parquet.Field
}

// Fields returns the fields in their order.
func (o *ordered) Fields() []parquet.Field { return o.fields }

// schemaOf returns the schema of columns.
func schemaOf(columns []column) *parquet.Schema {
	group := parquet.Group{}
	for i := range columns {
		group[columns[i].name] = columns[i].node()
	}
	byName := map[string]parquet.Field{}
	for _, f := range group.Fields() {
		byName[f.Name()] = f
	}
	o := &ordered{Group: group}
	for i := range columns {
		o.fields = append(o.fields, byName[columns[i].name])
	}
	return parquet.NewSchema("operations", o)
}

func (c *column) node() parquet.Node {
	node := parquet.Encoded(c.leaf(), c.encoding())
	if c.required {
		return parquet.Required(node)
	}
	return parquet.Optional(node)
}

func (c *column) leaf() parquet.Node {
	switch c.kind {
	case delta, repeated:
		return parquet.Leaf(parquet.Int64Type)
	case double:
		return parquet.Leaf(parquet.DoubleType)
	case flag:
		return parquet.Leaf(parquet.BooleanType)
	default:
		return parquet.String()
	}
}

func (c *column) encoding() encoding.Encoding {
	switch c.kind {
	case delta:
		return &parquet.DeltaBinaryPacked
	case double:
		return &parquet.ByteStreamSplit
	case repeated, name:
		return &parquet.RLEDictionary
	default:
		return &parquet.Plain
	}
}
