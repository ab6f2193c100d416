// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"
)

func main() {
	cfg, err := readSettings("distro/config/gateway.yaml")
	if err != nil {
		panic(err)
	}
	var ranks, steps, tensor int
	fmt.Sscan(os.Args[1], &ranks)
	fmt.Sscan(os.Args[2], &steps)
	fmt.Sscan(os.Args[3], &tensor)
	b := processorTime()
	r, err := record("", ranks, steps, tensor)
	if err != nil {
		panic(err)
	}
	fmt.Println("record", processorTime()-b, "requests", r.count, "spans", r.spans, "raw/req", r.raw/int64(r.count), "raw/span", float64(r.raw)/float64(r.spans), "zstd/span", float64(r.packed)/float64(r.spans))
	for _, staged := range []bool{false, true} {
		if len(os.Args) > 4 {
			f, _ := os.Create(os.Args[4])
			pprof.StartCPUProfile(f)
		}
		m, err := run(context.Background(), cfg, r, staged)
		pprof.StopCPUProfile()
		fmt.Println(err)
		if m == nil {
			continue
		}
		fmt.Println("total/span", m.total/1, float64(m.total)/float64(r.spans))
		for s := range stages {
			fmt.Printf("%d: %.0f  ", s, float64(m.times[s])/float64(r.spans))
		}
		fmt.Println("heap/rank", m.heap/int64(ranks), "trace spans", m.spans, m.traces)
		for k, v := range m.counters {
			if v != 0 {
				fmt.Print(k, "=", v, " ")
			}
		}
		fmt.Println()
	}
}
