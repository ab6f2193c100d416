// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// What the demo runs, beside the executable.
const (
	demoWorkerFile = "lockstep-demo-worker"
	demoPluginFile = "libnccl-profiler-lockstep.so"
	demoCuptiFile  = "lockstep-demo-cupti.so"
)

// demoParts are the paths of what is built from C.
type demoParts struct {
	worker, plugin, cupti string
	torch                 torchParts
}

// findDemoParts looks beside this executable, or in LOCKSTEP_BIN.
func (o *demoOptions) findParts() (p demoParts, err error) {
	dir := os.Getenv("LOCKSTEP_BIN")
	if dir == "" {
		self, err := os.Executable()
		if err != nil {
			return p, fmt.Errorf("find this executable: %w", err)
		}
		if real, err := filepath.EvalSymlinks(self); err == nil {
			self = real
		}
		dir = filepath.Dir(self)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return p, fmt.Errorf("find %s: %w", demoWorkerFile, err)
	}
	p = demoParts{worker: filepath.Join(dir, demoWorkerFile), plugin: filepath.Join(dir, demoPluginFile), cupti: filepath.Join(dir, demoCuptiFile)}
	return p, o.needParts(&p, dir)
}

// needParts checks that what this demo runs is there.
func (o *demoOptions) needParts(p *demoParts, dir string) (err error) {
	if o.torch == "" {
		if err := isThere(p.worker, "make run"); err != nil {
			return err
		}
	}
	if err := isThere(p.plugin, "make inject"); err != nil {
		return err
	}
	if o.witness == witnessCupti {
		return isThere(p.cupti, "make inject")
	}
	if o.torch != "" {
		p.torch, err = o.findTorch(dir)
	}
	return err
}

func isThere(path, target string) error {
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		return fmt.Errorf("find %s: got none in %s; want it there: `%s` in the source tree builds it",
			filepath.Base(path), filepath.Dir(path), target)
	}
	return nil
}
