package recording

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
)

// Compression compresses the blocks of a recording. Repeats is the default; module packed/zstd has another one.
type Compression interface {
	// ID identifies the method in the file: 0 is no compression, 1 is flate, 2 is zstd, 3 is repeats.
	ID() byte
	// Compress appends the compressed src to dst. One goroutine uses it at a time, so two Recorders do not share a
	// Compression. The dumps of a ring wait for each other.
	Compress(dst, src []byte) []byte
	// Decompress appends what Compress was given to dst, and fails if that has more than limit bytes. It is safe for
	// concurrent use.
	Decompress(dst, src []byte, limit int) ([]byte, error)
}

// Plain stores blocks as they are. It costs more time than Repeats, because more bytes are written.
func Plain() Compression { return plain{} }

type plain struct{}

func (plain) ID() byte                        { return 0 }
func (plain) Compress(dst, src []byte) []byte { return append(dst, src...) }

func (plain) Decompress(dst, src []byte, limit int) ([]byte, error) {
	if len(src) > limit {
		return dst, errTooLong
	}
	return append(dst, src...), nil
}

// Flate compresses with the fastest level of compress/flate. It costs several times as much as Repeats.
func Flate() Compression { return &fast{} }

type fast struct{ w *flate.Writer }

func (*fast) ID() byte { return 1 }

func (f *fast) Compress(dst, src []byte) []byte {
	out := bytes.NewBuffer(dst)
	if f.w == nil {
		f.w, _ = flate.NewWriter(out, flate.BestSpeed) // the level is valid
	} else {
		f.w.Reset(out)
	}
	_, _ = f.w.Write(src) // a Buffer does not fail
	_ = f.w.Close()
	return out.Bytes()
}

var errTooLong = errors.New("more bytes than the block announces")

func (*fast) Decompress(dst, src []byte, limit int) ([]byte, error) {
	out := bytes.NewBuffer(dst)
	n, err := io.Copy(out, io.LimitReader(flate.NewReader(bytes.NewReader(src)), int64(limit)+1))
	if err == nil && n > int64(limit) {
		err = errTooLong
	}
	return out.Bytes(), err
}

// methods are the compressions that a reader knows.
type methods []Compression

// find returns the compression of a block.
func (m methods) find(id byte) (Compression, error) {
	for _, c := range m {
		if c.ID() == id {
			return c, nil
		}
	}
	if id == 2 {
		return nil, errors.New("it is compressed with zstd, which this program does not link; see packed/zstd")
	}
	return nil, fmt.Errorf("it is compressed by the unknown method %d", id)
}
