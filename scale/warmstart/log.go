package warmstart

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/regularfile"
)

// A file is a sequence of frames: the length of the stored payload (4 bytes, little endian), the CRC-32C of the link
// and of this length, the CRC-32C of the stored payload, and the stored payload. The payload is a record, or the header
// in the first frame. With a key, the stored payload is sealed.
//
// The link is the end of the frame before. With a key it is the tag of that frame, and it is sealed too. So a frame can
// be used only behind the frames that stood before it when it was written: a stranger without the key can cut the file
// off at its end, and can bring back an older copy, but cannot mix two of them.
//
// The length has its own checksum, so that a flipped bit in it does not look like a frame that is cut off.
const (
	frameHead = 12
	linkSize  = 16
	maxFrame  = 64 << 20
	// roomOfLog is the number of bytes that changes may take before a small file is rewritten.
	roomOfLog = 4 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// kind says what a record is.
type kind byte

const (
	put     kind = 'P' // an object in its newest state
	deleted kind = 'D' // the key of a deleted object
	reached kind = 'B' // a version that was reached without a change
	whole   kind = 'E' // the end of a list
)

// record is one change of the collection.
type record struct {
	kind    kind
	version string
	key     api.Key
	data    []byte // of a put
}

func (r record) encode() []byte {
	out := make([]byte, 0, 1+len(r.version)+len(r.key.Namespace)+len(r.key.Name)+len(r.data)+3*binary.MaxVarintLen16)
	out = append(out, byte(r.kind))
	for _, text := range []string{r.version, r.key.Namespace, r.key.Name} {
		out = binary.AppendUvarint(out, uint64(len(text)))
		out = append(out, text...)
	}
	return append(out, r.data...)
}

// decodeRecord is the reverse of encode. The data of the record share the memory of the payload.
func decodeRecord(payload []byte) (record, error) {
	if len(payload) == 0 {
		return record{}, errMalformed
	}
	r := record{kind: kind(payload[0])}
	var ends [4]int // of the three texts in head
	head := make([]byte, 0, 128)
	rest := payload[1:]
	for i := range 3 {
		length, n := binary.Uvarint(rest)
		if n <= 0 || length > uint64(len(rest)-n) {
			return record{}, errMalformed
		}
		head = append(head, rest[n:n+int(length)]...)
		ends[i+1] = len(head)
		rest = rest[n+int(length):]
	}
	texts := string(head) // one allocation for all
	r.version, r.key.Namespace, r.key.Name = texts[:ends[1]], texts[ends[1]:ends[2]], texts[ends[2]:ends[3]]
	r.data = rest
	switch r.kind {
	case put, deleted, reached, whole:
		return r, nil
	}
	return record{}, errMalformed
}

// logFile is a file that is written. The methods of nil do nothing.
type logFile struct {
	file    *os.File
	seal    *sealer
	size    int64
	whole   int64  // the size up to the end of its list
	version string // newest version
	link    link   // of the next frame
	frame   []byte
}

// link is the end of a stored payload.
type link [linkSize]byte

// linkOf returns the link of the frame after a stored payload.
func linkOf(stored []byte) (l link) {
	copy(l[:], stored[max(0, len(stored)-linkSize):])
	return l
}

// headSum returns the checksum of a link and of the length of a frame.
func headSum(l *link, length []byte) uint32 {
	return crc32.Update(crc32.Checksum(l[:], castagnoli), castagnoli, length)
}

// createLog creates an empty file. Only its owner can read it.
func createLog(path string, seal *sealer) (*logFile, error) {
	file, err := regularfile.Create(path)
	if err != nil {
		return nil, err
	}
	return &logFile{file: file, seal: seal}, nil
}

// append adds a frame. A process that dies in the middle leaves a frame that is cut off, which a reader ignores.
func (f *logFile) append(payload []byte) error {
	stored := f.seal.seal(payload, &f.link)
	if len(stored) > maxFrame {
		return fmt.Errorf("an object has %d bytes", len(stored))
	}
	f.frame = binary.LittleEndian.AppendUint32(f.frame[:0], uint32(len(stored)))
	f.frame = binary.LittleEndian.AppendUint32(f.frame, headSum(&f.link, f.frame))
	f.frame = binary.LittleEndian.AppendUint32(f.frame, crc32.Checksum(stored, castagnoli))
	f.frame = append(f.frame, stored...)
	if _, err := f.file.WriteAt(f.frame, f.size); err != nil {
		return err
	}
	f.size += int64(len(f.frame))
	f.link = linkOf(stored)
	if cap(f.frame) > 1<<20 {
		f.frame = nil
	}
	return nil
}

// reach notes the version of a change. It fails if the version has no order, because a reader could not tell then which
// state of an object is the newest.
func (f *logFile) reach(version string) error {
	if f.version == "" {
		f.version = version
		return nil
	}
	order, ok := api.CompareVersions(version, f.version)
	if !ok {
		return fmt.Errorf("versions %q and %q have no order", f.version, version)
	}
	if order > 0 {
		f.version = version
	}
	return nil
}

// moveTo renames the file.
func (f *logFile) moveTo(path string) error { return os.Rename(f.file.Name(), path) }

// invalidate makes a file that cannot be removed useless for later processes.
func (f *logFile) invalidate() error {
	_, err := f.file.WriteAt([]byte{0xff, 0xff, 0xff, 0xff}, 0) // the length of the header
	return err
}

func (f *logFile) close() error {
	if f == nil {
		return nil
	}
	return f.file.Close()
}

// discard removes a file that was not completed.
func (f *logFile) discard() {
	if f == nil {
		return
	}
	_ = f.file.Close()
	_ = os.Remove(f.file.Name()) // the next list removes it if it stays
}

// frames reads the frames of a file.
type frames struct {
	in   io.Reader
	seal *sealer
	at   int64 // where the next frame begins
	link link  // of the next frame
	head [frameHead]byte
	body []byte
}

// next returns the payload of the next frame, which is valid until the next call, and the place of the frame. The error
// is io.EOF at the end, io.ErrUnexpectedEOF if the last frame is cut off, and errMalformed otherwise.
func (f *frames) next() (payload []byte, p place, err error) {
	if _, err := io.ReadFull(f.in, f.head[:]); err != nil {
		return nil, p, err
	}
	length := binary.LittleEndian.Uint32(f.head[:4])
	if headSum(&f.link, f.head[:4]) != binary.LittleEndian.Uint32(f.head[4:8]) || length > maxFrame {
		return nil, p, errMalformed
	}
	if int(length) > cap(f.body) {
		f.body = make([]byte, length)
	}
	stored := f.body[:length]
	if _, err := io.ReadFull(f.in, stored); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, p, err
	}
	if crc32.Checksum(stored, castagnoli) != binary.LittleEndian.Uint32(f.head[8:]) {
		return nil, p, errMalformed
	}
	if payload, err = f.seal.open(stored, &f.link); err != nil {
		return nil, p, errMalformed
	}
	p = place{at: f.at, link: f.link, stored: length}
	f.at += frameHead + int64(length)
	f.link = linkOf(stored)
	return payload, p, nil
}
