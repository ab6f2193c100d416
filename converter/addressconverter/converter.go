// SPDX-License-Identifier: Apache-2.0

// Package addressconverter reads the setting service::telemetry::metrics::address, which
// many configurations still have and newer collectors refuse, as the reader that it stood for.
package addressconverter

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"

	"go.opentelemetry.io/collector/confmap"
)

const (
	addressKey = "service::telemetry::metrics::address"
	readersKey = "service::telemetry::metrics::readers"
)

// NewFactory returns the factory that a manifest of the collector builder lists under
// "converters".
func NewFactory() confmap.ConverterFactory {
	return confmap.NewConverterFactory(func(confmap.ConverterSettings) confmap.Converter {
		return &converter{out: os.Stderr}
	})
}

// converter prints to out, not to the collector's logger: "validate" drops its log.
type converter struct {
	out io.Writer
}

// Convert replaces the address in conf by a Prometheus reader, beside those that are
// there, and prints that it did. An address that is no host and port gives an error.
func (c *converter) Convert(_ context.Context, conf *confmap.Conf) error {
	if !conf.IsSet(addressKey) {
		return nil
	}
	address, ok := conf.Get(addressKey).(string)
	if !ok { // nothing, or a number
		return fmt.Errorf("read %s: got %#v; want HOST:PORT, or readers instead", addressKey, conf.Get(addressKey))
	}
	readers, ok := conf.Get(readersKey).([]any)
	if !ok && conf.Get(readersKey) != nil {
		return nil // upstream refuses both settings
	}
	host, port, err := split(address)
	if err != nil {
		return err
	}
	readers = append([]any{reader(host, port)}, readers...)
	conf.Delete(addressKey)
	if err := conf.Merge(confmap.NewFromStringMap(map[string]any{readersKey: readers})); err != nil {
		return fmt.Errorf("set %s: %w", readersKey, err)
	}
	_, err = fmt.Fprintf(c.out, "Hint: %s: %s is read as readers: [{pull: {exporter: {prometheus: {host: %q, port: %d}}}}]. Collectors after v0.122 have readers only.\n",
		addressKey, address, host, port)
	if err != nil {
		return fmt.Errorf("print hint: %w", err)
	}
	return nil
}

func split(address string) (string, int, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("read %s: got %q; want HOST:PORT, or readers instead", addressKey, address)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("read %s: got port %q; want 0 to 65535", addressKey, text)
	}
	return host, int(port), nil
}

// reader names the metrics as the address did, and as the collector does by default.
func reader(host string, port int) map[string]any {
	return map[string]any{"pull": map[string]any{"exporter": map[string]any{"prometheus": map[string]any{
		"host":                host,
		"port":                port,
		"without_scope_info":  true,
		"without_units":       true,
		"without_type_suffix": true,
	}}}}
}
