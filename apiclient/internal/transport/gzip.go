package transport

import (
	"bufio"
	"compress/gzip"
	"io"
)

// inflater reads a gzip stream and returns each member when it is complete.
//
// The transparent decompression of net/http would delay the end of a member until the next one begins, because
// gzip.Reader looks for another member before it returns its data. A server that compresses each event of a watch as
// one member (WatchListCompression) would then seem to be one event late, for hours. So inflater reads single members.
// Only a Read that needs the content of the next member waits for its header.
type inflater struct {
	body   io.ReadCloser
	source *bufio.Reader // gzip.Reader stops at the end of a member only if it reads from an io.ByteReader
	gz     *gzip.Reader
	inside bool // a member is open
	err    error
}

// Inflate returns a body that decompresses gzip.
func Inflate(body io.ReadCloser) io.ReadCloser {
	return &inflater{body: body, source: bufio.NewReader(body)}
}

func (f *inflater) Read(p []byte) (int, error) {
	for f.err == nil {
		if !f.inside {
			f.err = f.nextMember()
			continue
		}
		n, err := f.gz.Read(p)
		if err == io.EOF {
			f.inside, err = false, nil
		}
		if n > 0 || err != nil {
			f.err = err
			return n, err
		}
	}
	return 0, f.err
}

// nextMember opens the next member. If the body ends between two members, the stream ends.
func (f *inflater) nextMember() error {
	if _, err := f.source.Peek(1); err != nil {
		return err
	}
	var err error
	if f.gz == nil {
		f.gz, err = gzip.NewReader(f.source)
	} else {
		err = f.gz.Reset(f.source)
	}
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	f.gz.Multistream(false)
	f.inside = true
	return nil
}

func (f *inflater) Close() error { return f.body.Close() }
