// SPDX-License-Identifier: Apache-2.0

package owdprobereceiver

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.yaml.in/yaml/v3"
)

func TestLoadConfig(t *testing.T) {
	cm, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	least := newDefaultConfig()
	least.Endpoints = []string{"10.0.0.1"}
	least.Peers.DNS = []string{"owd.example.com"}
	timeline := component.MustNewIDWithName("timeline", "main")
	for name, want := range map[string]*Config{
		"owd_probe": least,
		"owd_probe/all": {
			Node: "node-a", HostID: "7f3b", Endpoints: []string{"10.0.0.1", "10.0.1.1:900", "fd00::1", "[fd00::2]:901"}, Port: 862,
			Peers:      PeersConfig{List: []string{"node-b 10.0.0.2"}, Refresh: 5 * time.Second},
			Neighbours: 4, Seed: 7, Rate: 100, Paths: 2, Window: time.Second, PairInterval: 250 * time.Millisecond,
			Auth: AuthConfig{Key: "0123456789abcdef"}, Hardware: true, PureWithin: time.Microsecond,
			TimelineID: &timeline, MetricsInterval: time.Minute, MaxSeries: 100, MaxClocks: 50,
		},
	} {
		t.Run(name, func(t *testing.T) {
			sub, err := cm.Sub(name)
			require.NoError(t, err)
			cfg := NewFactory().CreateDefaultConfig()
			require.NoError(t, sub.Unmarshal(cfg))
			assert.Equal(t, want, cfg)
			assert.NoError(t, confmap.Validate(cfg))
		})
	}
}

func TestEndpointsWithAPortOrWithout(t *testing.T) {
	c := &Config{Endpoints: []string{"10.0.0.1", "10.0.1.1:900", "fd00::1", "[fd00::2]:901"}, Port: 862}
	got, err := c.locals()
	require.NoError(t, err)
	var want []netip.AddrPort
	for _, at := range []string{"10.0.0.1:862", "10.0.1.1:900", "[fd00::1]:862", "[fd00::2]:901"} {
		want = append(want, netip.MustParseAddrPort(at))
	}
	assert.Equal(t, want, got)
}

// A number that does not fit must not become another one on its way.
func TestAPortThatIsNone(t *testing.T) {
	cfg := NewFactory().CreateDefaultConfig()
	cm := confmap.NewFromStringMap(map[string]any{"port": 70000, "endpoints": []any{"10.0.0.1"}, "peers": map[string]any{"file": "x"}})
	require.NoError(t, cm.Unmarshal(cfg))
	require.ErrorContains(t, confmap.Validate(cfg), "check port: got 70000; want 1 to 65535")
}

func TestValidateNamesTheField(t *testing.T) {
	for want, spoil := range map[string]func(*Config){
		"check endpoints: got none; want the addresses":                func(c *Config) { c.Endpoints = nil },
		`check endpoints[1]: got "node-a"; want an IP address`:         func(c *Config) { c.Endpoints = []string{"10.0.0.1", "node-a"} },
		`check host_id: got "a/b"; want visible ASCII without a slash`: func(c *Config) { c.HostID = "a/b" },
		"check peers: got 0 of list, file and dns; want one":           func(c *Config) { c.Peers.DNS = nil },
		"check peers: got 2 of list, file and dns; want one":           func(c *Config) { c.Peers.File = "x" },
		"check peers::list: read entry 2: parse member: got 3 words":   func(c *Config) { c.Peers.DNS, c.Peers.List = nil, []string{"a 10.0.0.1", "b 10.0.0.2 x"} },
		`check peers::dns: read members by DNS: got name "a b"; want`:  func(c *Config) { c.Peers.DNS = []string{"a b"} },
		"check peers::refresh: got 5ns; want 100ms to 1h0m0s":          func(c *Config) { c.Peers.Refresh = 5 },
		"check auth: got key and key_file; want one of them":           func(c *Config) { c.Auth = AuthConfig{"0123456789abcdef", "x"} },
		"check auth::key: got 5 bytes; want at least 16":               func(c *Config) { c.Auth.Key = "short" },
		"check port: got 0; want 1 to 65535":                           func(c *Config) { c.Port = 0 },
		"check port: got 70000; want 1 to 65535":                       func(c *Config) { c.Port = 70000 },
		"check neighbours: got 0; want 1 to 64":                        func(c *Config) { c.Neighbours = 0 },
		"check rate: got 0.01; want 0.1 to 2000":                       func(c *Config) { c.Rate = 0.01 },
		"check paths: got 17; want 1 to 16":                            func(c *Config) { c.Paths = 17 },
		"check pair_interval: got 1ms; want 100ms to 2s":               func(c *Config) { c.PairInterval = time.Millisecond },
		"check window: got 2ns; want 100ms to 1m0s":                    func(c *Config) { c.Window = 2 },
		"check pure_within: got -1ns; want 0s to 1s":                   func(c *Config) { c.PureWithin = -1 },
		"check metrics_interval: got 0s; want 100ms to 1h0m0s":         func(c *Config) { c.MetricsInterval = 0 },
		"check max_series: got 0; want 1 to 1.048576e+06":              func(c *Config) { c.MaxSeries = 0 },
		"check max_clocks: got 65537; want 1 to 65536":                 func(c *Config) { c.MaxClocks = 65537 },
	} {
		t.Run(want, func(t *testing.T) {
			cfg := newDefaultConfig()
			cfg.Endpoints, cfg.Peers.DNS = []string{"10.0.0.1"}, []string{"owd.example.com"}
			require.NoError(t, confmap.Validate(cfg))
			spoil(cfg)
			assert.ErrorContains(t, confmap.Validate(cfg), want)
		})
	}
}

func TestTheKeyIsNotPrinted(t *testing.T) {
	cfg := newDefaultConfig()
	cfg.Auth.Key = "0123456789abcdef"
	cm := confmap.New()
	require.NoError(t, cm.Marshal(cfg))
	assert.NotContains(t, cm.ToStringMap()["auth"], "0123456789abcdef")
	out, err := yaml.Marshal(cm.ToStringMap())
	require.NoError(t, err)
	assert.NotContains(t, string(out), "0123456789abcdef")
}

func TestReadmeNamesEveryKey(t *testing.T) {
	for _, key := range keys(reflect.TypeFor[Config](), "") {
		assert.Regexp(t, "(?m)^\\| `"+regexp.QuoteMeta(key)+"` \\|", readme(t))
	}
}

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(text)
}

func keys(of reflect.Type, prefix string) (out []string) {
	for i := range of.NumField() {
		f := of.Field(i)
		name := strings.Split(f.Tag.Get("mapstructure"), ",")[0]
		if name == "" {
			continue
		}
		out = append(out, prefix+name)
		if f.Type.Kind() == reflect.Struct {
			out = append(out, keys(f.Type, prefix+name+"::")...)
		}
	}
	return out
}

// TestSamplesOfTheReadme loads every receiver of every sample that is published.
func TestSamplesOfTheReadme(t *testing.T) {
	samples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(readme(t), -1)
	require.NotEmpty(t, samples)
	loaded := 0
	for _, s := range samples {
		text := regexp.MustCompile(`\$\{env:\w+:-([^}]*)\}`).ReplaceAllString(s[1], "$1")
		var all map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(text), &all), text)
		receivers, ok := all["receivers"].(map[string]any)
		require.True(t, ok, text)
		for id, one := range receivers {
			require.Equal(t, "owd_probe", strings.Split(id, "/")[0])
			cfg := NewFactory().CreateDefaultConfig()
			require.NoError(t, confmap.NewFromStringMap(one.(map[string]any)).Unmarshal(cfg), text)
			require.NoError(t, confmap.Validate(cfg), text)
			loaded++
		}
	}
	assert.Equal(t, 5, loaded)
}
