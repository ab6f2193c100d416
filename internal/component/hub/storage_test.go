// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// memory is a storage extension that keeps everything in memory.
type memory struct {
	component.StartFunc
	component.ShutdownFunc
	storage.Client

	data map[string][]byte
	fail error
}

func (m *memory) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return m, m.fail
}

func (m *memory) Get(_ context.Context, key string) ([]byte, error) { return m.data[key], m.fail }

func (m *memory) Set(_ context.Context, key string, value []byte) error {
	m.data[key] = value
	return m.fail
}

func (m *memory) Close(context.Context) error { return m.fail }

type host struct {
	component.Host

	extensions map[component.ID]component.Component
}

func (h host) GetExtensions() map[component.ID]component.Component { return h.extensions }

var id, self = component.MustNewID("memory"), component.MustNewID("self")

func TestValue(t *testing.T) {
	m := &memory{data: map[string][]byte{}}
	client, err := OpenStorage(t.Context(), host{componenttest.NewNopHost(), map[component.ID]component.Component{id: m}}, &id, component.KindReceiver, self)
	require.NoError(t, err)
	v := NewValue(client, "key")
	data, err := v.Load(t.Context())
	require.NoError(t, err)
	assert.Nil(t, data)
	require.NoError(t, v.Save(t.Context(), []byte("x")))
	data, err = v.Load(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "x", string(data))
	require.ErrorContains(t, v.Save(t.Context(), nil), "write storage: got no state")
	huge := make([]byte, MaxValueBytes+1)
	require.EqualError(t, v.Save(t.Context(), huge), `write storage: key "key": got 67108865 bytes; want at most 67108864`)
	assert.Equal(t, "x", string(m.data["key"]))
	m.data["key"] = huge
	_, err = v.Load(t.Context())
	require.EqualError(t, err, `read storage: key "key": got 67108865 bytes; want at most 67108864 bytes`)
	m.fail = errors.New("disk full")
	_, err = v.Load(t.Context())
	require.EqualError(t, err, "read storage: disk full")
	require.EqualError(t, v.Save(t.Context(), []byte("y")), "write storage: disk full")
	require.EqualError(t, v.Close(t.Context()), "close storage: disk full")
}

func TestOpenStorage(t *testing.T) {
	none, err := OpenStorage(t.Context(), componenttest.NewNopHost(), nil, component.KindReceiver, self)
	require.NoError(t, err)
	assert.Nil(t, none)
	assert.Nil(t, NewValue(none, "key"))
	for want, ext := range map[string]map[component.ID]component.Component{
		`find storage: got no extension "memory"; want one that is listed under service::extensions`: {},
		`find storage: got extension "memory", which stores nothing; want one such as file_storage`:  {id: nil},
		`open storage of self: locked`: {id: &memory{fail: errors.New("locked")}},
	} {
		_, err := OpenStorage(t.Context(), host{componenttest.NewNopHost(), ext}, &id, component.KindReceiver, self)
		assert.EqualError(t, err, want)
	}
}

func TestOpen_AnotherProcessHoldsTheFile_SaysRemedy(t *testing.T) {
	hosted := host{componenttest.NewNopHost(), map[component.ID]component.Component{id: &memory{fail: errors.New("timeout")}}}
	_, err := OpenStorage(t.Context(), hosted, &id, component.KindReceiver, self)
	require.EqualError(t, err, "open storage of self: timeout: another process may hold its file, such as a second collector "+
		"(fuser names it); stop that process, or give this collector a directory of its own")
	for _, other := range []string{"permission denied", "read tcp 10.0.0.1:6379: i/o timeout"} {
		hosted.extensions[id].(*memory).fail = errors.New(other)
		_, err = OpenStorage(t.Context(), hosted, &id, component.KindReceiver, self)
		require.EqualError(t, err, "open storage of self: "+other)
	}
}

func TestOpenError_FileIsDamaged_SaysRemedy(t *testing.T) {
	assert.EqualError(t, StorageError("self", errors.New("invalid database")), "open storage of self: invalid database: its file is damaged: "+
		"move the file that is named like this component away, in the directory of the storage, and start again")
}
