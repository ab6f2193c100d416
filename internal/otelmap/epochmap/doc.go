// Package epochmap owns how observations of persistence domains look as log events.
package epochmap
