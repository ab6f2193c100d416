// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/report"
)

// progress draws a bar of the bytes read, on a terminal only.
type progress struct {
	w     io.Writer // nil: draw nothing
	total int64
	now   func() time.Time

	done  int64
	drawn time.Time
	wide  int // columns of the last drawing
}

// Progress is drawn from the second tenth of a second on, so that short input
// shows none, and ten times a second, which the eye takes for steady.
const (
	drawEvery = 100 * time.Millisecond
	barWidth  = 30
)

func newProgress(w io.Writer, total int64, show bool, now func() time.Time) *progress {
	p := &progress{total: total, now: now, drawn: now()}
	if show {
		p.w = w
	}
	return p
}

// advance counts bytes as stored.
func (p *progress) advance(n int64) {
	p.done += n
	if p.w == nil {
		return
	}
	if t := p.now(); t.Sub(p.drawn) >= drawEvery {
		p.drawn = t
		p.draw()
	}
}

func (p *progress) draw() {
	share := 1.0
	if p.total > 0 {
		share = min(1, float64(p.done)/float64(p.total))
	}
	full := int(share * barWidth)
	text := fmt.Sprintf("reading [%s%s] %3.0f %%  %s of %s", strings.Repeat("#", full), strings.Repeat(" ", barWidth-full),
		100*share, report.Bytes(p.done), report.Bytes(p.total))
	pad := max(0, p.wide-len(text))
	p.wide = len(text)
	_, _ = fmt.Fprintf(p.w, "\r%s%s", text, strings.Repeat(" ", pad))
}

// clear removes the bar.
func (p *progress) clear() {
	if p.w != nil && p.wide > 0 {
		_, _ = fmt.Fprintf(p.w, "\r%s\r", strings.Repeat(" ", p.wide))
		p.wide = 0
	}
}

// reader counts what is read through it.
func (p *progress) reader(r io.Reader) io.Reader { return &countingReader{r: r, p: p} }

type countingReader struct {
	r io.Reader
	p *progress
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.p.advance(int64(n))
	return n, err
}
