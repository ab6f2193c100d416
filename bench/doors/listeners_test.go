// SPDX-License-Identifier: Apache-2.0

package doors

import (
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/testdata"
)

func repository(t *testing.T) string {
	t.Helper()
	return testdata.Root(t)
}

// listeners returns the addresses on which a process listens.
func listeners(t *testing.T, pid int) (out []net.IP) {
	t.Helper()
	sockets, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	require.NoError(t, err)
	own := map[string]bool{}
	for _, fd := range sockets {
		to, err := os.Readlink(fd)
		if err == nil && strings.HasPrefix(to, "socket:[") {
			own[strings.Trim(to, "socket:[]")] = true
		}
	}
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) < 10 || f[3] != "0A" || !own[f[9]] {
				continue
			}
			host, _, _ := strings.Cut(f[1], ":")
			b, err := hex.DecodeString(host)
			require.NoError(t, err)
			for word := range slices.Chunk(b, 4) { // of a little-endian machine
				slices.Reverse(word)
			}
			out = append(out, b)
		}
	}
	require.NotEmpty(t, out)
	return out
}
