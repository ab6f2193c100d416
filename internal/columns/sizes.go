// SPDX-License-Identifier: Apache-2.0

package columns

// Names returns the names of all columns, in the order of the file.
func Names() []string {
	out := make([]string, len(table))
	for i := range table {
		out[i] = table[i].name
	}
	return out
}

// ColumnBytes returns how many bytes of the file each column takes, with the headers of its pages and without its
// part of the metadata.
func (f *File) ColumnBytes() map[string]int64 {
	out := map[string]int64{}
	for i := range f.groups {
		for k := range f.groups[i].chunks {
			c := &f.groups[i].chunks[k]
			out[c.path] += c.size
		}
	}
	return out
}
