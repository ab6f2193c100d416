// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Suffix of a ring's file name.
const Suffix = ".ring"

const (
	// maxNames bounds how much of a directory is looked at: a directory of rings
	// has one per process of a host.
	maxNames = 1 << 16
	// maxRings bounds what is returned: more processes than a host has for one
	// job, at 64 MiB each more memory than it has.
	maxRings = 4096
)

// Discover lists the files in dir that may be opened as rings, sorted. What has
// a ring's name but is a link, no regular file, too large, or of a foreign
// owner is refused by name (*Error); so is a directory that cannot be read, is
// a link itself, or holds too much.
func Discover(dir string, o Options) (paths []string, refused []error) {
	names, err := ringNames(dir)
	if err != nil {
		refused = append(refused, err)
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		err := inspect(path, o)
		switch {
		case errors.Is(err, os.ErrNotExist): // gone since it was listed
		case err != nil:
			refused = append(refused, err)
		default:
			paths = append(paths, path)
		}
	}
	return paths, refused
}

// ringNames may return names along with an error.
func ringNames(dir string) ([]string, error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, failed(dir, "directory", err, "one that may be read")
	}
	if !info.IsDir() {
		return nil, refuse(dir, "directory", typeName(info.Mode()), "a directory, not followed through a link")
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil, failed(dir, "directory", err, "one that may be read")
	}
	defer func() { _ = d.Close() }() // only read from
	all, err := d.Readdirnames(maxNames)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, failed(dir, "directory", err, "its names")
	}
	return ringsAmong(dir, all)
}

// ringsAmong returns the first names of rings among those of a directory.
func ringsAmong(dir string, all []string) ([]string, error) {
	names := slices.DeleteFunc(all, func(n string) bool { return !strings.HasSuffix(n, Suffix) || strings.HasPrefix(n, ".") })
	slices.Sort(names)
	first := names[:min(len(names), maxRings)]
	switch {
	case len(all) == maxNames:
		return first, refuse(dir, "directory", fmt.Sprintf("%d names or more", maxNames), "fewer; the others are not looked at")
	case len(names) > maxRings:
		return first, refuse(dir, "directory", fmt.Sprintf("%d rings", len(names)), fmt.Sprintf("at most %d; the others are not looked at", maxRings))
	}
	return first, nil
}

// inspect judges what a name leads to, without following or opening it.
func inspect(path string, o Options) error {
	info, err := os.Lstat(path)
	if err != nil {
		return failed(path, "file", err, "a ring")
	}
	return judge(path, info, o)
}

func judge(path string, info os.FileInfo, o Options) error {
	if !info.Mode().IsRegular() {
		return refuse(path, "type", typeName(info.Mode()), "a regular file")
	}
	uid, gid, ok := ownerOf(info)
	if !ok {
		return failed(path, "owner", errors.ErrUnsupported, "a system that has rings")
	}
	if allowed, want := o.allow(path, uid, gid); !allowed {
		return refuse(path, "owner", fmt.Sprintf("user %d, group %d", uid, gid), want)
	}
	if info.Size() > o.maxFile() {
		return refuse(path, "size", fmt.Sprintf("%d bytes", info.Size()), fmt.Sprintf("at most %d", o.maxFile()))
	}
	return nil
}

func (o Options) allow(path string, uid, gid uint32) (ok bool, want string) {
	if o.Owner != nil {
		return o.Owner(uid, gid), "one that the options allow"
	}
	return trusted(uid, gid) || letIn(filepath.Dir(path), uid),
		"our own user, root, a group that we belong to, or a file in a directory that only those write to whom its owner let in"
}

// letIn reports whether who made the file was let into dir by somebody whom we
// trust, root or ourselves, or owns it. So an agent that may read everything need
// not be in the jobs' group.
func letIn(dir string, uid uint32) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || info.Mode()&othersWrite != 0 {
		return false
	}
	owner, _, ok := ownerOf(info)
	return ok && (owner == 0 || int(owner) == os.Geteuid() || owner == uid)
}

// othersWrite is the permission of everybody to write.
const othersWrite = 0o002

// trusted is the rule for owners by themselves. Who may create files of a group
// is in that group or was let into its directory by it.
func trusted(uid, gid uint32) bool {
	if uid == 0 || int(uid) == os.Geteuid() || int(gid) == os.Getegid() {
		return true
	}
	groups, err := os.Getgroups()
	return err == nil && slices.Contains(groups, int(gid))
}

func typeName(m os.FileMode) string {
	switch m.Type() {
	case 0:
		return "a regular file"
	case os.ModeDir:
		return "a directory"
	case os.ModeSymlink:
		return "a symbolic link"
	case os.ModeNamedPipe:
		return "a FIFO"
	case os.ModeSocket:
		return "a socket"
	default:
		return "a device"
	}
}
