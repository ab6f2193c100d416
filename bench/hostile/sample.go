// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const mebibyte = 1 << 20

// procDir is the folder in which the kernel shows the collector.
func (c *collector) procDir() string { return "/proc/" + strconv.Itoa(c.cmd.Process.Pid) }

// rss returns the collector's resident memory, bytes.
func (c *collector) rss() (float64, error) {
	b, err := os.ReadFile(filepath.Join(c.procDir(), "statm"))
	if err != nil {
		return 0, fmt.Errorf("read memory of the collector: %w", err)
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0, fmt.Errorf("read memory of the collector: got %q; want two numbers or more", b)
	}
	pages, err := strconv.ParseFloat(fields[1], 64)
	return pages * float64(os.Getpagesize()), err
}

// entries returns how many entries a folder of the collector's process has: its descriptors or
// its threads.
func (c *collector) entries(folder string) (float64, error) {
	list, err := os.ReadDir(filepath.Join(c.procDir(), folder))
	return float64(len(list)), err
}

// goroutines returns how many the collector has.
func (c *collector) goroutines(ctx context.Context) (float64, error) {
	b, err := get(ctx, "http://"+c.pprof+"/debug/pprof/goroutine?debug=1")
	if err != nil {
		return 0, err
	}
	var n float64
	_, err = fmt.Sscanf(string(b), "goroutine profile: total %f", &n)
	return n, err
}

// own returns the collector's counters that are not 0, by name: the sum over all their series.
func (c *collector) own(ctx context.Context) (map[string]float64, error) {
	b, err := get(ctx, "http://"+c.telemetry+"/metrics")
	if err != nil {
		return nil, err
	}
	return counters(b), nil
}

func counters(text []byte) map[string]float64 {
	sums := map[string]float64{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		end := strings.IndexAny(line, "{ ")
		if end <= 0 || line[0] == '#' {
			continue
		}
		name, value := line[:end], line[strings.LastIndexByte(line, ' ')+1:]
		if v, err := strconv.ParseFloat(value, 64); err == nil && v != 0 && strings.HasPrefix(name, "otelcol_") {
			sums[name] += v
		}
	}
	return sums
}

// refusals sums the counters of what the collector's receivers refused.
func refusals(own map[string]float64) (sum float64) {
	for name, v := range own {
		if strings.HasPrefix(name, "otelcol_receiver_refused_") {
			sum += v
		}
	}
	return sum
}
