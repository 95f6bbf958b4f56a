package zstd

import (
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Blocks compresses the blocks of recordings. It implements recording.Compression, for recording.Options and for
// recording.ReadOptions. Such recordings are smaller than those with the default, but the command leat does not read
// them.
type Blocks struct {
	encoder *zstd.Encoder

	mu       sync.Mutex // guards the fields below
	decoders []*zstd.Decoder
}

// NewBlocks returns a Blocks.
func NewBlocks() (*Blocks, error) {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	return &Blocks{encoder: e}, nil
}

// ID returns the number of zstd in recordings.
func (*Blocks) ID() byte { return 2 }

// Compress appends the compressed src to dst. One goroutine uses it at a time.
func (b *Blocks) Compress(dst, src []byte) []byte { return b.encoder.EncodeAll(src, dst) }

// maxBlock is the largest block of a recording in bytes.
const maxBlock = 32 << 20

var errTooLong = errors.New("zstd: more bytes than announced")

// Decompress appends what Compress was given to dst. It fails if that has more than limit bytes, or more than 32 MiB.
// It is safe for concurrent use.
func (b *Blocks) Decompress(dst, src []byte, limit int) ([]byte, error) {
	d, err := b.take()
	if err != nil {
		return dst, err
	}
	before := len(dst)
	dst, err = d.DecodeAll(src, dst)
	b.mu.Lock()
	b.decoders = append(b.decoders, d)
	b.mu.Unlock()
	if err != nil {
		return dst, fmt.Errorf("zstd: %w", err)
	}
	if len(dst)-before > limit {
		return dst, errTooLong
	}
	return dst, nil
}

// take returns a decoder that no other goroutine uses.
func (b *Blocks) take() (*zstd.Decoder, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if last := len(b.decoders) - 1; last >= 0 {
		d := b.decoders[last]
		b.decoders = b.decoders[:last]
		return d, nil
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBlock))
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	return d, nil
}
