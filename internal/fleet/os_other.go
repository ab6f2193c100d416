// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package fleet

import (
	"errors"
	"os"
)

const openFlags = os.O_RDONLY

var errNotLink, errNotFolder = errors.New("no link"), errors.New("no folder")
