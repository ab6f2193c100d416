// SPDX-License-Identifier: Apache-2.0

// Command gen writes docs/capabilities.md to the file that it is given.
package main

import (
	"log"
	"os"

	"github.com/lockstep-otel/lockstep/internal/capability"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatalf("gen: got %d arguments; want the file to write", len(os.Args)-1)
	}
	if err := os.WriteFile(os.Args[1], []byte(capability.Document()), 0o644); err != nil {
		log.Fatalf("gen: write document: %v", err)
	}
}
