package apiclient

import (
	"bufio"
	"compress/gzip"
	"io"
)

// inflater reads a gzip stream and hands on each member as it ends.
//
// The transparent decompression of net/http would hold back the end of a member until the next one begins: at the end
// of a member gzip.Reader looks for another before it returns what it has. A server that compresses each event of a
// watch as a member of its own (WatchListCompression) would then seem to be one event late, for hours. So members are
// read one by one, and the header of the next is awaited only by the Read that wants its content.
type inflater struct {
	body   io.ReadCloser
	source *bufio.Reader // gzip.Reader reads no further than a member only from an io.ByteReader
	gz     *gzip.Reader
	inside bool // a member is open
	err    error
}

func newInflater(body io.ReadCloser) *inflater {
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

// nextMember opens the next member; the end of the body between two members is the end of the stream.
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
