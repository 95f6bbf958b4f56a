package wire

import (
	"compress/gzip"
	"net/http"
)

// CompressFrom is the size in bytes from which kube-apiserver compresses an answer.
const CompressFrom = 128 << 10

// Compress returns a writer that compresses the answer with the level of kube-apiserver. ok is false if the client does
// not accept that. The caller must call Finish after the answer.
func Compress(w http.ResponseWriter, r *http.Request) (g *GzipWriter, ok bool) {
	if !wants(r.Header.Get("Accept-Encoding"), "gzip") {
		return nil, false
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Add("Vary", "Accept-Encoding")
	gz, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // fails only for an invalid level
	return &GzipWriter{ResponseWriter: w, gz: gz}, true
}

// GzipWriter compresses an answer.
type GzipWriter struct {
	http.ResponseWriter
	gz *gzip.Writer
}

// Write compresses bytes.
func (g *GzipWriter) Write(p []byte) (int, error) { return g.gz.Write(p) }

// FlushError sends buffered bytes. http.ResponseController calls it.
func (g *GzipWriter) FlushError() error {
	if err := g.gz.Flush(); err != nil {
		return err
	}
	return http.NewResponseController(g.ResponseWriter).Flush()
}

// Finish ends the present gzip member. Later writes start another member; a client must continue to read after the end
// of one.
func (g *GzipWriter) Finish() {
	_ = g.gz.Close() // an error means that the client has gone
	g.gz.Reset(g.ResponseWriter)
}
