// SPDX-License-Identifier: Apache-2.0

package flightrecorderreceiver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A name that was made to lead here, in a browser, is of one origin with this server: it must
// not ask. Who is no browser may use any name.
func TestReboundNamesMayNotAsk(t *testing.T) {
	asked := 0
	s := &server{request: func(context.Context, time.Time) answer {
		asked++
		return answer{Outcome: requestDone}
	}}
	h := http.NewCrossOriginProtection().Handler(s.handler())
	for _, c := range []struct {
		host, origin, site string
		want               int
	}{
		{"evil.example:8000", "http://evil.example:8000", "", http.StatusForbidden},
		{"evil.example:8000", "", "same-origin", http.StatusForbidden},
		{"localhost.evil.example", "http://localhost.evil.example", "", http.StatusForbidden},
		{"localhost:8000", "http://localhost:8000", "same-origin", http.StatusAccepted},
		{"127.0.0.1:8000", "http://127.0.0.1:8000", "", http.StatusAccepted},
		{"[::1]:8000", "http://[::1]:8000", "", http.StatusAccepted},
		{"[::1]", "http://[::1]", "", http.StatusAccepted},
		{"node17:8000", "", "", http.StatusAccepted},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/trigger", http.NoBody)
		r.Host = c.host
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		if c.site != "" {
			r.Header.Set("Sec-Fetch-Site", c.site)
		}
		before, w := asked, httptest.NewRecorder()
		h.ServeHTTP(w, r)
		assert.Equal(t, c.want, w.Code, "%+v", c)
		assert.Equal(t, c.want == http.StatusAccepted, asked > before, "%+v", c)
	}
}
