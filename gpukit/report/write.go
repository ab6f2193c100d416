// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText bounds the text of a check, bytes.
const maxText = 600

// Names of the two files.
const (
	JSONName     = "report.json"
	MarkdownName = "report.md"
)

var titles = map[Status]string{
	Shown:    "shown on the GPU",
	StandIn:  "right on the stand-in",
	Noted:    "noted",
	NotShown: "not shown here",
	Failed:   "FAILED",
}

// Write writes report.json and report.md into dir, each in one step. Texts and values
// are as clean returns them; names are the kit's own.
func (r *Report) Write(dir string, clean func(string) string) error {
	c := r.cleaned(clean)
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	if err := replace(filepath.Join(dir, JSONName), append(text, '\n')); err != nil {
		return err
	}
	return replace(filepath.Join(dir, MarkdownName), []byte(c.Markdown()))
}

func (r *Report) cleaned(clean func(string) string) *Report {
	c := *r
	c.Machine = slices.Clone(r.Machine)
	for i := range c.Machine {
		c.Machine[i].Value = clean(c.Machine[i].Value)
	}
	c.Parts = []*Part{}
	for _, p := range r.Parts {
		c.Parts = append(c.Parts, p.cleaned(clean))
	}
	return &c
}

func (p *Part) cleaned(clean func(string) string) *Part {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &Part{Name: p.Name, Title: p.Title, LimitS: p.LimitS, TookS: p.TookS, Checks: slices.Clone(p.Checks)}
	for i := range c.Checks {
		c.Checks[i].Text = clean(c.Checks[i].Text)
	}
	return c
}

// replace writes a file that no reader sees half of.
func replace(path string, content []byte) error {
	if err := os.WriteFile(path+".tmp", content, 0o644); err != nil {
		_ = os.Remove(path + ".tmp") // half of it may be there
		return fmt.Errorf("write report: %w", err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// Markdown returns the report for people.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Lockstep on this machine\n\nKit %s, %s, %.0f s.\n\n", r.Kit, r.Began.UTC().Format("2006-01-02 15:04 UTC"), r.TookS)
	b.WriteString("| | |\n| --- | --- |\n")
	for _, f := range r.Machine {
		fmt.Fprintf(&b, "| %s | %s |\n", Cell(f.Name), Cell(f.Value))
	}
	b.WriteString("\n| checks | |\n| --- | --- |\n")
	for _, s := range Statuses {
		fmt.Fprintf(&b, "| %s | %d |\n", s.Title(), r.Count(s))
	}
	for _, p := range r.Parts {
		p.markdown(&b)
	}
	b.WriteString(r.Missing())
	if len(r.Files) > 0 {
		fmt.Fprintf(&b, "\nFiles: %s\n", strings.Join(r.Files, ", "))
	}
	return b.String()
}

// Missing returns paragraphs of Markdown that name the parts without checks; empty where
// all parts ran.
func (r *Report) Missing() string {
	var text string
	if len(r.NotRun) > 0 {
		text = fmt.Sprintf("\n**The run did not come to: %s.**\n", Cell(strings.Join(r.NotRun, ", ")))
	}
	if len(r.LeftOut) > 0 {
		text += fmt.Sprintf("\nNot asked for (-only): %s.\n", Cell(strings.Join(r.LeftOut, ", ")))
	}
	return text
}

func (p *Part) markdown(b *strings.Builder) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(b, "\n## %s\n\n%.1f s of at most %.0f.\n\n| check | | |\n| --- | --- | --- |\n", p.Title, p.TookS, p.LimitS)
	for _, c := range p.Checks {
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", Cell(c.Name), c.Status.Title(), c.Cell())
	}
}

// Title returns the status in words.
func (s Status) Title() string { return titles[s] }

// Cell returns the text and the figures as a cell of a Markdown table.
func (c *Check) Cell() string {
	var texts []string
	if c.Text != "" {
		texts = append(texts, c.Text)
	}
	for _, f := range c.Figures {
		texts = append(texts, f.String())
	}
	return Cell(strings.Join(texts, "; "))
}

// String returns the figure with its unit, four digits.
func (f Figure) String() string {
	value := strconv.FormatFloat(f.Value, 'g', 4, 64)
	if abs := math.Abs(f.Value); abs >= 1000 && abs < 1e15 {
		value = strconv.FormatFloat(f.Value, 'f', 0, 64)
	}
	if f.Unit == "1" {
		return f.Name + " " + value
	}
	return f.Name + " " + value + " " + f.Unit
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// oneLine returns valid text of one line of at most maxText bytes, without control
// characters.
func oneLine(s string) string {
	if len(s) > 4*maxText {
		s = s[:4*maxText]
	}
	return cut(strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "?"), func(c rune) bool {
		return unicode.IsSpace(c) || unicode.IsControl(c)
	}), " "), maxText)
}

// cut returns a text of at most n bytes.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	at := n - len("...")
	for !utf8.RuneStart(s[at]) {
		at--
	}
	return s[:at] + "..."
}

// Cell returns the text such that it stays in its column of a Markdown table.
func Cell(s string) string {
	return strings.NewReplacer("|", "\\|", "<", "&lt;", "\n", " ").Replace(s)
}
