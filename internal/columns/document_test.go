// SPDX-License-Identifier: Apache-2.0

package columns

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// The document has each column and each key of the metadata, as they are.
func TestDocument_ColumnsAndKeys_AreThoseOfTheFormat(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testdata.Root(t), "docs", "format", "parquet.md"))
	require.NoError(t, err)
	var documented [][]string
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\| (yes|no) \\| (.*?) ?\\| (\\w+) \\| .+ \\|$")
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, m[1:])
	}
	types := map[kind]string{delta: "int64", repeated: "int64", double: "double", flag: "boolean", name: "string", document: "string"}
	encodings := map[kind]string{delta: "delta", repeated: "dictionary", double: "split", flag: "plain", name: "dictionary", document: "plain"}
	var want [][]string
	for i := range table {
		c := &table[i]
		absent, unit := "yes", c.unit
		if c.required {
			absent = "no"
		}
		if unit == inUnits {
			unit = "`" + unit + "`"
		}
		want = append(want, []string{c.name, types[c.kind], absent, unit, encodings[c.kind]})
	}
	assert.Equal(t, want, documented)
	for _, key := range []string{
		keyVersion, keyJob, keyIncarnation, keyFirstStep, keyLastStep, keyRanks, keyRanksCount, keyResolution, keyMaxError, keyProducer, keySequence,
	} {
		assert.Contains(t, string(text), "`"+key+"`")
	}
}
