// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/regular"
)

// LibraryFolders may have the driver's libraries, below the root: those of Debian's packages,
// of others' packages, of machines that mount the driver (GKE, virtual machines), and of
// NVIDIA's driver container.
func LibraryFolders() []string {
	return []string{
		"usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib", "usr/local/nvidia/lib64",
		"run/nvidia/driver/usr/lib/x86_64-linux-gnu", "run/nvidia/driver/usr/lib/aarch64-linux-gnu", "run/nvidia/driver/usr/lib64",
	}
}

// Files are where versions lie that need nobody to be asked.
type Files struct {
	Proc, Sys string
	// Libraries are the folders that may have the driver's libraries.
	Libraries []string
	// Image is the container image that the node's work runs in, as whoever starts it says;
	// ImageFile a file that says it.
	Image, ImageFile string
}

const (
	// maxFile bounds a file: those of /proc and /sys are a page at most.
	maxFile = 4096
	// maxNames bounds the names of a folder that are looked at: the folder of a system's libraries
	// has some thousands.
	maxNames = 1 << 16
)

// Read reads all of them. That a file is not there is no problem: a node has what it has.
func (f *Files) Read() *Read {
	r := &Read{}
	f.kernel(r)
	f.driver(r)
	f.libraries(r)
	f.nics(r)
	f.image(r)
	return r
}

func (f *Files) kernel(r *Read) {
	path := filepath.Join(f.Proc, "sys", "kernel", "osrelease")
	v, err := line(path)
	r.problem(err)
	r.add(Version{Domain: model.VersionKernel, Version: v, Witness: path})
}

// nvrm finds the version in the first line of /proc/driver/nvidia/version, as of NVIDIA's driver
// 550: "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024",
// and of its open modules "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.90.07 …".
var nvrm = regexp.MustCompile(`^NVRM version:.*\s(\d+\.\d+(?:\.\d+)*)(?:\s|$)`)

// driver reads the version of the module that is loaded, from the driver itself and from the
// kernel's list of modules.
func (f *Files) driver(r *Read) {
	proc, sys := filepath.Join(f.Proc, "driver", "nvidia", "version"), filepath.Join(f.Sys, "module", "nvidia", "version")
	loaded := ""
	switch b, err := read(proc); {
	case err != nil:
		r.problem(err)
	case b != nil:
		first, _, _ := strings.Cut(string(b), "\n")
		m := nvrm.FindStringSubmatch(first)
		if m == nil {
			r.problem(fmt.Errorf("read %s: got %.80q; want NVRM version and a number", proc, first))
			break
		}
		loaded = m[1]
		r.add(Version{Domain: model.VersionKernelDriver, Version: loaded, Witness: proc})
	}
	module, err := line(sys)
	r.problem(err)
	switch {
	case module == "":
	case loaded == "":
		r.add(Version{Domain: model.VersionKernelDriver, Version: module, Witness: sys})
	case module != loaded:
		r.Mismatches = append(r.Mismatches, Mismatch{model.FactDriverMismatch, fmt.Sprintf(
			"NVIDIA's driver says %s of itself (%s), and the kernel %s (%s)", loaded, proc, module, sys)})
	}
}

// library is the link that programs load NVML by; what it leads to has the driver's version behind
// its name.
const library = "libnvidia-ml.so"

// libraries reads the version of the driver's libraries, by the first link that is found. NVML
// works only with the module of its own version.
func (f *Files) libraries(r *Read) {
	for _, dir := range f.Libraries {
		path := filepath.Join(dir, library+".1")
		to, err := os.Readlink(path)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNotLink) {
				r.problem(fmt.Errorf("read link: %w", err))
			}
			continue
		}
		v, ok := strings.CutPrefix(filepath.Base(to), library+".")
		if !ok || !dotted.MatchString(v) {
			r.problem(fmt.Errorf("read link %s: got %.80q; want %s and a version", path, to, library))
			continue
		}
		r.add(Version{Domain: model.VersionUserDriver, Version: v, Witness: path})
		return
	}
}

// dotted is a version of NVIDIA's: 550.90.07.
var dotted = regexp.MustCompile(`^\d+(\.\d+)+$`)

// nics reads the firmware and the driver of RDMA devices.
func (f *Files) nics(r *Read) {
	dir := filepath.Join(f.Sys, "class", "infiniband")
	names, left, err := list(dir)
	r.problem(err)
	r.LeftOut += left
	for _, name := range names {
		at := filepath.Join(dir, name)
		get := func(parts ...string) string {
			v, err := line(filepath.Join(append([]string{at}, parts...)...))
			r.problem(err)
			return v
		}
		board := get("board_id")
		if board == "" {
			board = get("hca_type")
		}
		r.add(Version{Domain: model.VersionNICFirmware, Unit: name, Model: board, Version: get("fw_ver"), Witness: filepath.Join(at, "fw_ver")})
		module := filepath.Join("device", "driver", "module")
		r.add(Version{
			Domain: model.VersionNICDriver, Unit: name, Model: linked(filepath.Join(at, module)), Version: get(module, "version"),
			Witness: filepath.Join(at, module, "version"),
		})
	}
}

// linked is the name of what a link leads to, empty where it is none.
func linked(path string) string {
	to, err := os.Readlink(path)
	if err != nil {
		return ""
	}
	name, err := text(filepath.Base(to))
	if err != nil {
		return ""
	}
	return name
}

func (f *Files) image(r *Read) {
	v, err := text(f.Image)
	if err != nil {
		r.problem(fmt.Errorf("read image: %w", err))
	}
	witness := "configuration"
	if v == "" && f.ImageFile != "" {
		v, err = line(f.ImageFile)
		r.problem(err)
		witness = f.ImageFile
	}
	r.add(Version{Domain: model.VersionImage, Version: v, Witness: witness})
}

// line is what a file says as one line; empty where it is not there.
func line(path string) (string, error) {
	b, err := read(path)
	if err != nil || b == nil {
		return "", err
	}
	v, err := text(string(b))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return v, nil
}

// read returns what a regular file holds; nil where it is not there.
func read(path string) ([]byte, error) {
	f, err := os.OpenFile(path, openFlags, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotFolder) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read version: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("read version: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("read %s: got %s; want a regular file", path, regular.Kind(info.Mode()))
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil && len(b) == 0: // as drivers answer what their device does not have
		return nil, fmt.Errorf("read version: %w", err)
	case len(b) > maxFile:
		return nil, fmt.Errorf("read %s: got more than %d bytes; want at most that", path, maxFile)
	}
	return b, nil
}

// list returns the first names of a folder, in order, and how many more there are; none where it is
// not there.
func list(dir string) (names []string, left int, err error) {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotFolder) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("list versions: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	names, err = f.Readdirnames(maxNames)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, fmt.Errorf("list versions: %w", err)
	}
	slices.Sort(names)
	left = max(len(names)-maxUnits, 0)
	return names[:len(names)-left], left, nil
}
