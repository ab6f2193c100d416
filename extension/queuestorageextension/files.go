// SPDX-License-Identifier: Apache-2.0

package queuestorageextension

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/boltfile"
)

const (
	// backupSuffix is that of the files which file_storage sets aside.
	backupSuffix = ".backup"
	// stampLayout is the time in the name of a file that was set aside, as file_storage writes it.
	stampLayout = "20060102T150405.000Z0700"
)

// storageFile is the name that file_storage gives a file: the kind of the component, its type, name and signal.
var storageFile = regexp.MustCompile(`^(receiver|processor|exporter|connector|extension)_[a-z0-9_]+_`)

// checkFiles sets aside each damaged file of the storage's directory, before any component opens it.
func (q *queueStorage) checkFiles(ctx context.Context) error {
	if q.config.Directory == "" {
		return nil
	}
	entries, err := os.ReadDir(q.config.Directory)
	if errors.Is(err, os.ErrNotExist) {
		return nil // the storage has made none yet
	}
	if err != nil {
		return fmt.Errorf("check the files of the storage: %w", err)
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || strings.HasSuffix(e.Name(), backupSuffix) || !storageFile.MatchString(e.Name()) {
			continue
		}
		if err := q.checkFile(ctx, filepath.Join(q.config.Directory, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (q *queueStorage) checkFile(ctx context.Context, path string) error {
	size, damage := check(path)
	if damage == nil {
		return nil
	}
	if !errors.Is(damage, boltfile.ErrDamaged) && !errors.Is(damage, errEmpty) {
		q.set.Logger.Warn("A file of the storage cannot be checked.", zap.String("file", path), zap.Error(damage))
		return nil
	}
	backup := path + "." + time.Now().UTC().Format(stampLayout) + backupSuffix
	if err := os.Rename(path, backup); err != nil {
		return fmt.Errorf("set aside the damaged file %s (%w): %w; remove it, and start again", path, damage, err)
	}
	q.telemetry.ExtensionQueueStorageFilesDamaged.Add(ctx, 1)
	q.set.Logger.Error("A file of the storage is damaged and was set aside. What it held is lost, and the component begins without it. Remove the backup once you have looked at it.",
		zap.String("file", path), zap.String("backup", backup), zap.Int64("bytes", size), zap.Error(damage))
	return nil
}

// errEmpty is the error of a file without a byte. The storage writes its first pages as it makes a file, so that only
// a kill in that moment leaves such a one, or damage.
var errEmpty = errors.New("got an empty file; want the pages of a database")

// check returns how large a file is, and what is wrong with it. A file that another process uses is not checked: the
// storage then waits for it, and reports it.
func check(path string) (size int64, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0, fmt.Errorf("open it: %w", err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	if used, err := inUse(f); used || err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, fmt.Errorf("ask for its size: %w", err)
	}
	if info.Size() == 0 {
		return 0, errEmpty
	}
	return info.Size(), boltfile.Check(f, info.Size())
}
