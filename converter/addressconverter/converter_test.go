// SPDX-License-Identifier: Apache-2.0

package addressconverter

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v3"
)

func convert(t *testing.T, text string) (*confmap.Conf, string, error) {
	t.Helper()
	var raw map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &raw))
	conf := confmap.NewFromStringMap(raw)
	var out bytes.Buffer
	err := (&converter{out: &out}).Convert(t.Context(), conf)
	return conf, out.String(), err
}

func TestConvert_Address_BecomesReader(t *testing.T) {
	conf, out, err := convert(t, `service: {telemetry: {metrics: {address: "0.0.0.0:18888", level: detailed}, logs: {level: debug}}}`)

	require.NoError(t, err)
	assert.False(t, conf.IsSet(addressKey))
	assert.Equal(t, "detailed", conf.Get("service::telemetry::metrics::level"))
	assert.Equal(t, "debug", conf.Get("service::telemetry::logs::level"))
	readers := conf.Get(readersKey).([]any)
	require.Len(t, readers, 1)
	settings := confmap.NewFromStringMap(readers[0].(map[string]any))
	assert.Equal(t, "0.0.0.0", settings.Get("pull::exporter::prometheus::host"))
	assert.Equal(t, 18888, settings.Get("pull::exporter::prometheus::port"))
	assert.Contains(t, out, "Hint: service::telemetry::metrics::address")
}

func TestConvert_AddressBesideReaders_KeepsThem(t *testing.T) {
	conf, _, err := convert(t, `service: {telemetry: {metrics: {address: ":1", readers: [{periodic: {}}]}}}`)

	require.NoError(t, err)
	assert.Len(t, conf.Get(readersKey), 2)
}

func TestConvert_NoAddress_ChangesNothing(t *testing.T) {
	for _, text := range []string{"{}", "service: {telemetry: {metrics: {level: none}}}", "service:"} {
		before, _, err := convert(t, text)
		require.NoError(t, err, text)
		assert.False(t, before.IsSet(readersKey), text)
	}
}

func TestConvert_NoHostAndPort_NamesWhatWasFound(t *testing.T) {
	for address, want := range map[string]string{
		`"localhost"`: `"localhost"`, `"localhost:http"`: `"http"`, `":65536"`: `"65536"`, `""`: `""`, "8888": "8888", "": "<nil>",
	} {
		_, _, err := convert(t, `service: {telemetry: {metrics: {address: `+address+`}}}`)
		assert.ErrorContains(t, err, "got", address)
		assert.ErrorContains(t, err, want, address)
	}
}

// What upstream refuses without an address, it refuses with one.
func TestConvert_ReadersNoList_LeftToUpstream(t *testing.T) {
	conf, out, err := convert(t, `service: {telemetry: {metrics: {address: "localhost:1", readers: bad}}}`)

	require.NoError(t, err)
	assert.Equal(t, "bad", conf.Get(readersKey))
	assert.True(t, conf.IsSet(addressKey))
	assert.Empty(t, out)
}
