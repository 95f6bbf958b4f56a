package recording

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/leatproject/leat/observe/recording/internal/frame"
)

// A recording is a header, blocks, and a trailer. All numbers are little-endian.
//
//	header:  magic[8] version u16 zero u16 created i64 crc u32
//	block:   marker[4] kind u32 stored u32 raw u32 first i64 span u64 records u32 crc-of-payload u32
//	         crc-of-header u32, then the payload
//	trailer: magic[8] offset-of-the-last-index u64 crc u32
//
// The payload of a block is compressed with S2. That of a data block is a sequence of records. An index block describes
// the data blocks since the index before it, and has the offset of that index. A file that was cut has no trailer; its
// blocks are then found one after the other. A block that is damaged is skipped: the next one begins with the marker
// and a header whose checksum is right. Times are nanoseconds since 1970. Checksums are CRC-32C.
const (
	headerMagic  = "\x89LEATRC\n"
	trailerMagic = "\x89LEATRX\n"
	blockMarker  = "\xf5LRB"

	// version is the format that this package reads and writes.
	version = 3

	headerSize      = 24
	blockHeaderSize = 44
	trailerSize     = 20

	// maxBlock bounds the payload of a block in bytes, compressed or not. A reader allocates no more for a block.
	maxBlock = 32 << 20
	// fullBlock is the size at which a writer ends a block. Larger blocks compress by a few percent better; a damaged
	// block loses its whole content.
	fullBlock = 256 << 10
	// maxRecord bounds the data of one record.
	maxRecord = frame.MaxSize
)

// Kinds of blocks.
const (
	dataBlock  = 0
	indexBlock = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// ErrNotRecording is the error of a file that does not begin like a recording.
var ErrNotRecording = errors.New("the file is not a recording of leat")

// VersionError is the error of a recording in another format than the one that this version of leat reads.
type VersionError struct{ Version uint16 }

// Error names the format of the file, and the one that can be read.
func (e *VersionError) Error() string {
	return fmt.Sprintf("the recording has format %d, and this leat reads format %d", e.Version, version)
}

func appendHeader(dst []byte, created time.Time) []byte {
	from := len(dst)
	dst = append(dst, headerMagic...)
	dst = binary.LittleEndian.AppendUint16(dst, version)
	dst = binary.LittleEndian.AppendUint16(dst, 0)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(created.UnixNano()))
	return binary.LittleEndian.AppendUint32(dst, checksum(dst[from:]))
}

// errDamagedHeader means that the first bytes are those of a recording, and others of the header are not.
var errDamagedHeader = errors.New("the header is damaged")

// parseHeader returns the time at which the recording was created. If only the checksum is wrong, the blocks may still
// be good.
func parseHeader(b []byte) (time.Time, error) {
	if len(b) < len(headerMagic) || string(b[:len(headerMagic)]) != headerMagic {
		return time.Time{}, ErrNotRecording
	}
	if len(b) < headerSize || binary.LittleEndian.Uint32(b[20:]) != checksum(b[:20]) {
		return time.Time{}, errDamagedHeader
	}
	if v := binary.LittleEndian.Uint16(b[8:]); v != version {
		return time.Time{}, &VersionError{v}
	}
	return time.Unix(0, int64(binary.LittleEndian.Uint64(b[12:]))), nil
}

// blockHeader is the head of a block.
type blockHeader struct {
	kind        uint32
	stored, raw uint32 // bytes of the payload, compressed and not
	first, last int64  // times of the first and of the last record
	records     uint32
	crc         uint32 // of the stored payload
}

func (h *blockHeader) append(dst []byte) []byte {
	from := len(dst)
	dst = append(dst, blockMarker...)
	dst = binary.LittleEndian.AppendUint32(dst, h.kind)
	dst = binary.LittleEndian.AppendUint32(dst, h.stored)
	dst = binary.LittleEndian.AppendUint32(dst, h.raw)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.first))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(h.last-h.first))
	dst = binary.LittleEndian.AppendUint32(dst, h.records)
	dst = binary.LittleEndian.AppendUint32(dst, h.crc)
	return binary.LittleEndian.AppendUint32(dst, checksum(dst[from:]))
}

// parseBlockHeader returns the header at the start of b; ok is false if b does not begin with one.
func parseBlockHeader(b []byte) (h blockHeader, ok bool) {
	if len(b) < blockHeaderSize || string(b[:4]) != blockMarker || binary.LittleEndian.Uint32(b[40:]) != checksum(b[:40]) {
		return h, false
	}
	h = blockHeader{
		kind: binary.LittleEndian.Uint32(b[4:]), stored: binary.LittleEndian.Uint32(b[8:]),
		raw: binary.LittleEndian.Uint32(b[12:]), first: int64(binary.LittleEndian.Uint64(b[16:])),
		records: binary.LittleEndian.Uint32(b[32:]), crc: binary.LittleEndian.Uint32(b[36:]),
	}
	h.last = h.first + int64(binary.LittleEndian.Uint64(b[24:]))
	return h, h.stored <= maxBlock && h.raw <= maxBlock
}

func appendTrailer(dst []byte, index int64) []byte {
	from := len(dst)
	dst = append(dst, trailerMagic...)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(index))
	return binary.LittleEndian.AppendUint32(dst, checksum(dst[from:]))
}

// parseTrailer returns the offset of the last index; ok is false if b is not a trailer.
func parseTrailer(b []byte) (index int64, ok bool) {
	if len(b) != trailerSize || string(b[:8]) != trailerMagic || binary.LittleEndian.Uint32(b[16:]) != checksum(b[:16]) {
		return 0, false
	}
	return int64(binary.LittleEndian.Uint64(b[8:])), true
}
