// SPDX-License-Identifier: Apache-2.0

package parquetexporter

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// store is as much of S3 as the exporter uses: PUT and HEAD of objects. It answers in the words of the protocol; a
// test in e2e uses a whole store.
type store struct {
	mu      sync.Mutex
	objects map[string][]byte
	puts    int
	fail    bool
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
	case s.fail:
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>no</Message></Error>`)
	case r.Method == http.MethodPut:
		s.puts++
		s.objects[r.URL.Path] = plainBody(r, body)
		w.Header().Set("ETag", `"0"`)
	case r.Method == http.MethodHead && s.objects[r.URL.Path] != nil:
		w.Header().Set("Content-Length", r.Header.Get("Content-Length"))
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		w.Header().Set("ETag", `"0"`)
		http.ServeContent(w, r, "", time.Now(), strings.NewReader(string(s.objects[r.URL.Path])))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// plainBody returns the content of a body that is signed in chunks: each has its length in hex and a signature in
// front (Signature Version 4, "Transferring Payload in Multiple Chunks").
func plainBody(r *http.Request, body []byte) []byte {
	if !strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		return body
	}
	var plain []byte
	for rest := string(body); ; {
		head, after, ok := strings.Cut(rest, "\r\n")
		if !ok {
			return plain
		}
		size := 0
		for _, digit := range strings.SplitN(head, ";", 2)[0] {
			size = size*16 + strings.IndexRune("0123456789abcdef", digit)
		}
		if size <= 0 || size > len(after) {
			return plain
		}
		plain = append(plain, after[:size]...)
		rest = strings.TrimPrefix(after[size:], "\r\n")
	}
}

func (s *store) set(fail bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = fail
}

func (s *store) has() (map[string][]byte, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string][]byte{}
	for k, v := range s.objects {
		out[k] = v
	}
	return out, s.puts
}

func withStore(t *testing.T, dir string) (*Config, *store) {
	t.Helper()
	s := &store{objects: map[string][]byte{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c := direct(dir)
	c.FlushInterval = time.Second
	s3 := newDefaultS3()
	s3.Endpoint, s3.Bucket, s3.Prefix, s3.Region, s3.Node, s3.Insecure = strings.TrimPrefix(server.URL, "http://"), "bucket", "ops", "us-east-1", "n1", true
	s3.AccessKey, s3.SecretKey = "key", "secret"
	s3.Retry.InitialInterval, s3.Retry.MaxInterval = 10*time.Millisecond, 50*time.Millisecond
	c.S3 = &s3
	return c, s
}

func send(t *testing.T, r *running) {
	t.Helper()
	td, _ := request(3)
	require.NoError(t, r.ConsumeTraces(t.Context(), td))
}

func TestUpload_EachFile_IsOneObject(t *testing.T) {
	c, s := withStore(t, t.TempDir())
	r := started(t, c)
	send(t, r)
	require.Eventually(t, func() bool { return r.value(t, "uploads", "uploaded") == 1 }, time.Minute, 10*time.Millisecond)
	objects, _ := s.has()
	require.Len(t, objects, 1)
	file := filesOf(t, c.Directory)[0]
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, want, objects["/bucket/ops/job/life/n1/"+filepath.Base(file)])
	assert.Zero(t, r.value(t, "waiting_files", ""))
	require.NoError(t, r.Shutdown(t.Context()))
}

func TestUpload_StoreFails_FileStaysAndIsUploadedLater(t *testing.T) {
	c, s := withStore(t, t.TempDir())
	s.set(true)
	r := started(t, c)
	send(t, r)
	require.Eventually(t, func() bool { return r.value(t, "uploads", "failed") >= 2 }, time.Minute, 10*time.Millisecond)
	assert.EqualValues(t, 1, r.value(t, "waiting_files", ""))
	assert.Len(t, filesOf(t, c.Directory), 1)
	s.set(false)
	require.Eventually(t, func() bool { return r.value(t, "uploads", "uploaded") == 1 }, time.Minute, 10*time.Millisecond)
	require.NoError(t, r.Shutdown(t.Context()))
}

func TestUpload_Restart_UploadsOnlyWhatIsMissing(t *testing.T) {
	c, s := withStore(t, t.TempDir())
	r := started(t, c)
	send(t, r)
	require.Eventually(t, func() bool { _, n := s.has(); return n == 1 }, time.Minute, 10*time.Millisecond)
	send(t, r)
	s.set(true)
	require.NoError(t, r.Shutdown(t.Context()))
	require.Len(t, filesOf(t, c.Directory), 2)

	s.set(false)
	r = started(t, c)
	require.Eventually(t, func() bool { return r.value(t, "uploads", "uploaded") == 2 }, time.Minute, 10*time.Millisecond)
	objects, puts := s.has()
	assert.Len(t, objects, 2)
	assert.Equal(t, 2, puts, "the first file was there")
	require.NoError(t, r.Shutdown(t.Context()))
}

func TestShutdown_StoreDoesNotAnswer_Ends(t *testing.T) {
	blocked := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-blocked }))
	defer server.Close()
	defer close(blocked)
	c, _ := withStore(t, t.TempDir())
	c.S3.Endpoint = strings.TrimPrefix(server.URL, "http://")
	r := started(t, c)
	send(t, r)
	require.Eventually(t, func() bool { return r.value(t, "waiting_files", "") == 1 }, time.Minute, 10*time.Millisecond)
	require.NoError(t, r.Shutdown(t.Context()))
}
