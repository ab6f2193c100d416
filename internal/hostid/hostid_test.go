// SPDX-License-Identifier: Apache-2.0

package hostid

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhereTheIDComesFrom(t *testing.T) {
	file := filepath.Join(t.TempDir(), "machine-id")
	require.NoError(t, os.WriteFile(file, []byte(" of-file \nsecond line\n"), 0o600))
	for want, c := range map[string]struct{ configured, environment, file string }{
		"configured":     {"configured", "of-environment", file},
		"of-environment": {"", "of-environment", file},
		"of-file":        {"", "", file},
		"name":           {"", "", file + "none"},
	} {
		t.Setenv("LOCKSTEP_HOST_ID", c.environment)
		h, err := find(c.configured, "name", "b1", c.file)
		require.NoError(t, err)
		assert.Equal(t, Host{Name: "name", ID: want, Boot: "b1"}, h)
		assert.Equal(t, "host:"+want+"/b1/realtime", h.Realtime())
		assert.Equal(t, "host:"+want+"/b1/raw", h.Raw())
	}
}

func TestWhatIsNoHost(t *testing.T) {
	t.Setenv("LOCKSTEP_HOST_ID", "rack 7/node")
	none := filepath.Join(t.TempDir(), "none")
	_, err := find("", "name", "b1", none)
	require.EqualError(t, err, `find id of host: got "rack 7/node"; want visible ASCII without a slash`, "it is part of a clock's name, wherever it comes from")
	t.Setenv("LOCKSTEP_HOST_ID", "")
	_, err = find("", "", "b1", none)
	require.EqualError(t, err, "find id of host: the system tells none; want it as host_id")
	_, err = find("x", "name", "", none)
	require.EqualError(t, err, "find id of boot: the system tells none")
}
