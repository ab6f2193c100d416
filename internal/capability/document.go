// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"fmt"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Document returns docs/capabilities.md.
func Document() string {
	var b strings.Builder
	b.WriteString(head)
	for _, k := range kinds {
		writeKind(&b, k.kind)
	}
	writeShapes(&b)
	b.WriteString(apart)
	writeMasks(&b)
	return b.String()
}

func writeKind(b *strings.Builder, kind string) {
	fmt.Fprintf(b, "\n### Kind `%s`\n\n", kind)
	row(b, append([]string{"class"}, names(Rows)...)...)
	row(b, strings.Split(strings.Repeat("---,", len(Rows))+"---", ",")...)
	for _, c := range Classes() {
		if c.Kind != kind {
			continue
		}
		cells := []string{c.code()}
		for _, r := range Rows {
			cell, _ := Of(r, c)
			cells = append(cells, cell.short())
		}
		row(b, cells...)
	}
	b.WriteString("\n")
	if kind == model.FindingDesync {
		writeHangs(b)
		return
	}
	if kind != model.FindingStraggler {
		fmt.Fprintf(b, "%s Test: `%s`.\n", unjudged[kind], testUnjudged)
		return
	}
	for _, c := range Classes() {
		if c.Kind == kind {
			writeReasons(b, c)
		}
	}
	fmt.Fprintf(b, "\n`%s`, every class: %s Test: `%s`.\n", FlightRecorder, unread, testUnjudged)
}

// writeHangs says of each class of hang what dumps tell.
func writeHangs(b *strings.Builder) {
	fmt.Fprintf(b, "Live rows and Kineto: %s\n\n`%s` (test `%s`; how often it is right, also of what is missing or damaged: [bench/hang](../bench/hang/README.md)):\n\n", ofHangs, FlightRecorder, testHangs)
	for _, c := range Classes() {
		if c.Kind == model.FindingDesync {
			cell, _ := Of(FlightRecorder, c)
			fmt.Fprintf(b, "* %s: %s. %s\n", c.code(), cell.Verdict, cell.Why)
		}
	}
}

func names(rows []Row) (out []string) {
	for _, r := range rows {
		out = append(out, string(r))
	}
	return out
}

func row(b *strings.Builder, cells ...string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

// code is the class as a reader finds it in a finding.
func (c Class) code() string {
	if c.Cause != "" {
		return "`" + c.Name + "`, cause `" + c.Cause + "`"
	}
	return "`" + c.Name + "`"
}

var short = map[Verdict]string{Decides: "**decides**", Bounds: "bounds", Abstains: "abstains", NotJudged: "abstains (not judged yet)", Elsewhere: "abstains (told elsewhere)"}

// short is the verdict, and for a bound one under what the fault is told.
func (c *Cell) short() string {
	if c.Verdict != Bounds {
		return short[c.Verdict]
	}
	return short[c.Verdict] + ": " + listed(c.Told)
}

// listed are the classes under which somebody is told, for a reader.
func listed(told []string) string {
	var out []string
	for _, x := range told {
		if x != Nobody {
			x = "`" + x + "`"
		}
		out = append(out, x)
	}
	return strings.Join(out, ", ")
}

// writeReasons tells why each row's verdict of a class is what it is, rows of one
// reason together.
func writeReasons(b *strings.Builder, c Class) {
	fmt.Fprintf(b, "\n%s (test `%s/%s`)\n\n", c.code(), testStragglers, c.key())
	for i := 0; i < len(Rows); {
		cell, _ := Of(Rows[i], c)
		from := i
		for i++; i < len(Rows); i++ {
			if next, _ := Of(Rows[i], c); next.Why != cell.Why || next.Verdict != cell.Verdict {
				break
			}
		}
		if Rows[from] != FlightRecorder {
			fmt.Fprintf(b, "* %s: %s. %s\n", strings.Join(names(Rows[from:i]), ", "), cell.Verdict, cell.Why)
		}
	}
}

func writeShapes(b *strings.Builder) {
	b.WriteString(shapesHead)
	columns := []Row{KernelChannels, Scopes, CUPTI, Kineto}
	for _, part := range []struct {
		fault string
		of    func(*Shape) map[Row][]string
	}{
		{"A rank computes a third longer", func(s *Shape) map[Row][]string { return s.Compute }},
		{"A rank's host is late", func(s *Shape) map[Row][]string { return s.Host }},
	} {
		b.WriteString("\n")
		row(b, append([]string{part.fault}, names(columns)...)...)
		row(b, strings.Split(strings.Repeat("---,", len(columns))+"---", ",")...)
		for i := range Shapes {
			cells := []string{Shapes[i].Name}
			for _, r := range columns {
				cells = append(cells, listed(part.of(&Shapes[i])[r]))
			}
			row(b, cells...)
		}
	}
}

func writeMasks(b *strings.Builder) {
	b.WriteString(masksHead)
	row(b, "interface", "NCCL", "`summary`", "`collectives` (default)", "`all`")
	row(b, "---", "---", "---", "---", "---")
	for _, m := range Masks {
		row(b, fmt.Sprintf("v%d", m.ABI), m.NCCL, fmt.Sprintf("0x%04x", m.Summary), fmt.Sprintf("0x%04x", m.Collectives), fmt.Sprintf("0x%04x", m.All))
	}
	b.WriteString(masksTail)
}
