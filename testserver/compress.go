package testserver

import (
	"compress/gzip"
	"net/http"
)

// compressFrom is the size from which kube-apiserver compresses a list.
const compressFrom = 128 << 10

// compress returns the writer to answer to: one that compresses, if the server does and the client accepts it. done
// must be called when the answer is complete.
func (x *call) compress() (w *gzipWriter, ok bool) {
	if !x.options.Compress || !wants(x.http.Header.Get("Accept-Encoding"), "gzip") {
		return nil, false
	}
	x.w.Header().Set("Content-Encoding", "gzip")
	x.w.Header().Add("Vary", "Accept-Encoding")
	return &gzipWriter{ResponseWriter: x.w, gz: gzip.NewWriter(x.w)}, true
}

// gzipWriter compresses what is written through it.
type gzipWriter struct {
	http.ResponseWriter
	gz *gzip.Writer
}

func (g *gzipWriter) Write(p []byte) (int, error) { return g.gz.Write(p) }

// FlushError hands on what is buffered; http.ResponseController calls it.
func (g *gzipWriter) FlushError() error {
	if err := g.gz.Flush(); err != nil {
		return err
	}
	return http.NewResponseController(g.ResponseWriter).Flush()
}

// finish completes the member of the stream that was begun. More may be written after it, as a member of its own: a
// client has to read on where one ends.
func (g *gzipWriter) finish() {
	_ = g.gz.Close() // a client that is gone needs no answer
	g.gz.Reset(g.ResponseWriter)
}
