// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// place writes a file of the directory so that it is there as a whole or not at all, also after a crash of the
// machine.
func place(directory, path string, content []byte) error {
	to := filepath.Join(directory, filepath.FromSlash(path))
	if err := makeFolders(directory, filepath.Dir(to)); err != nil {
		return err
	}
	temp := to[:len(to)-len(extension)] + temporary
	if err := writeSynced(temp, content); err != nil {
		return errors.Join(err, removeIfThere(temp))
	}
	if err := os.Rename(temp, to); err != nil {
		return errors.Join(fmt.Errorf("rename file: %w", err), removeIfThere(temp))
	}
	if err := syncFolder(filepath.Dir(to)); err != nil {
		// The file is there, but a crash may take it: it is written again, under another name.
		return errors.Join(err, removeIfThere(to))
	}
	return nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove file that was not written whole: %w", err)
	}
	return nil
}

func writeSynced(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode) //nolint:gosec // the group reads it
	if err != nil {
		return fmt.Errorf("make file: %w", err)
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	return nil
}

// makeFolders makes the folders from the directory down to one, and syncs those above each that is new.
func makeFolders(directory, folder string) error {
	_, err := os.Stat(folder)
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) || folder == directory {
		return fmt.Errorf("find folder: %w", err)
	}
	above := filepath.Dir(folder)
	if err := makeFolders(directory, above); err != nil {
		return err
	}
	if err := os.Mkdir(folder, folderMode); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // the group reads it
		return fmt.Errorf("make folder: %w", err)
	}
	return syncFolder(above)
}
