// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// manifestName lists the kit's files, as sha256sum does, below lines that begin with #.
const manifestName = "MANIFEST"

// Verify compares the kit's files with its manifest, and returns a line for each that is
// missing or is not as it was built. A folder without a manifest, made by hand, has none.
func (k *Kit) Verify() (broken []string, err error) {
	f, err := os.Open(filepath.Join(k.Dir, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		sum, name, ok := strings.Cut(lines.Text(), "  ")
		if !ok || !filepath.IsLocal(name) {
			return broken, fmt.Errorf("read manifest: got %.80q; want a sum and the name of a file", lines.Text())
		}
		if why := k.compare(name, sum); why != "" {
			broken = append(broken, name+" "+why)
		}
	}
	if err := lines.Err(); err != nil {
		return broken, fmt.Errorf("read manifest: %w", err)
	}
	return broken, nil
}

// compare returns what is wrong with a file; empty where nothing is.
func (k *Kit) compare(name, want string) string {
	f, err := os.Open(filepath.Join(k.Dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "is missing"
	}
	if err != nil {
		return "cannot be read: " + err.Error()
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "cannot be read: " + err.Error()
	}
	if hex.EncodeToString(sum.Sum(nil)) != want {
		return "is not as it was built"
	}
	return ""
}
