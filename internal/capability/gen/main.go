// Command gen writes docs/capabilities.md to the file that it is given.
package main

import (
	"fmt"
	"os"

	"github.com/lockstep-otel/lockstep/internal/capability"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintf(os.Stderr, "gen: got %d arguments; want the file to write\n", len(os.Args)-1)
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(capability.Document()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}
