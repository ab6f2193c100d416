// SPDX-License-Identifier: Apache-2.0

package timelineextension

import (
	"bytes"
	_ "embed" // the page
	"encoding/json"
	"html/template"
	"io"
	"net/http"

	"github.com/lockstep-otel/lockstep/internal/timeline"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// newHandler serves the timeline. What is served is copied first: a slow reader
// keeps nobody waiting.
func newHandler(t *timeline.Timeline) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /timeline", func(w http.ResponseWriter, _ *http.Request) {
		v := newView(t.State())
		answer(w, "application/json", func(b io.Writer) error { return json.NewEncoder(b).Encode(v) })
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		p := newPage(newView(t.State()))
		answer(w, "text/html; charset=utf-8", func(b io.Writer) error { return pageTemplate.Execute(b, p) })
	})
	return mux
}

func answer(w http.ResponseWriter, kind string, write func(io.Writer) error) {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		http.Error(w, "write answer: "+err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(b.Bytes()) // a reader that has gone needs no answer
}
