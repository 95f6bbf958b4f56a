package testserver

import (
	"compress/gzip"
	"net/http"
)

// compressFrom is the size in bytes from which kube-apiserver compresses a list.
const compressFrom = 128 << 10

// compress returns a writer that compresses the answer; ok is false if the server does not compress or the client does
// not accept it. The caller must call finish after the answer.
func (x *call) compress() (w *gzipWriter, ok bool) {
	if !x.options.Compress || !wants(x.http.Header.Get("Accept-Encoding"), "gzip") {
		return nil, false
	}
	x.w.Header().Set("Content-Encoding", "gzip")
	x.w.Header().Add("Vary", "Accept-Encoding")
	return &gzipWriter{ResponseWriter: x.w, gz: gzip.NewWriter(x.w)}, true
}

// gzipWriter compresses an answer.
type gzipWriter struct {
	http.ResponseWriter
	gz *gzip.Writer
}

func (g *gzipWriter) Write(p []byte) (int, error) { return g.gz.Write(p) }

// FlushError sends buffered bytes. http.ResponseController calls it.
func (g *gzipWriter) FlushError() error {
	if err := g.gz.Flush(); err != nil {
		return err
	}
	return http.NewResponseController(g.ResponseWriter).Flush()
}

// finish ends the present gzip member. Later writes start another member; a client must continue to read after the end
// of one.
func (g *gzipWriter) finish() {
	_ = g.gz.Close() // an error means that the client has gone
	g.gz.Reset(g.ResponseWriter)
}
