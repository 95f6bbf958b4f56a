package warmstart

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/regularfile"
)

// The reasons why a file cannot be used.
var (
	errNoFile    = errors.New("there is no file")
	errOther     = errors.New("the file is of another collection or type")
	errRebooted  = errors.New("the machine has started since the file was written")
	errNoBootID  = errors.New("this system does not name its boot (only Linux does)")
	errShard     = errors.New("the requests are of a shard; give the source of the shard to warmstart.New, and not the reverse")
	errMalformed = errors.New("the file is damaged, was given up, has another key, or is not one of this package")
)

// format is the version of the file format.
const format = 2

// header says which collection a file has.
type header struct {
	Format       int    `json:"format"`
	Boot         string `json:"boot"`
	Cluster      string `json:"cluster"`
	Resource     string `json:"resource"`
	Namespace    string `json:"namespace"`
	Labels       string `json:"labels"`
	Fields       string `json:"fields"`
	Shard        string `json:"shardSelector"`
	NoManaged    bool   `json:"noManagedFields"`
	MediaType    string `json:"mediaType"`
	Type         string `json:"type"`
	TypeContents string `json:"typeContents"` // a hash, and the mask
}

// header describes the collection of a request.
func (w *ListerWatcher[T]) header(o api.Options[T]) header {
	c, contents := w.source.Collection(), w.contents
	if masked, ok := api.As[codec.MaskSource](w.source); ok {
		contents += " of " + masked.Mask().String()
	}
	return header{
		Format: format, Boot: w.boot, Cluster: w.o.Cluster, Resource: c.Resource.String(), Namespace: c.Namespace,
		Labels: o.LabelSelector, Fields: o.FieldSelector, Shard: c.Shard, NoManaged: o.DropManagedFields,
		MediaType: w.mediaType, Type: w.typeName, TypeContents: contents,
	}
}

func (h header) encode() []byte {
	out, _ := json.Marshal(h) // strings and numbers
	return out
}

// check reports why a file with another header cannot be used.
func (h header) check(have header) error {
	switch {
	case have.Format != h.Format:
		return fmt.Errorf("%w: its format is %d, and this program has format %d", errMalformed, have.Format, h.Format)
	case have.Boot != h.Boot:
		return errRebooted
	case have.Type == h.Type && have.TypeContents != h.TypeContents:
		return fmt.Errorf("%w: the fields of %s have changed since the file was written", errOther, h.Type)
	}
	have.Boot = h.Boot
	mine, other := reflect.ValueOf(h), reflect.ValueOf(have)
	for i := range mine.NumField() {
		if a, b := mine.Field(i).Interface(), other.Field(i).Interface(); a != b {
			return fmt.Errorf("%w: its %s is %.100q, and not %.100q", errOther, mine.Type().Field(i).Tag.Get("json"), fmt.Sprint(b), fmt.Sprint(a))
		}
	}
	return nil
}

// entry is the newest record of an object.
type entry struct {
	place
	version string
	gone    bool
}

// replayed is a file that was read.
type replayed struct {
	file    *logFile
	index   index
	version string
}

// index has the newest states of the objects that exist, in the order of the file.
type index []place

// place is where the record of an object is.
type place struct {
	at     int64  // where the frame begins
	link   link   // of the frame
	stored uint32 // the length of the frame without its head
	length uint32 // of the encoded object
}

func indexOf(entries map[api.Key]entry) index {
	out := make(index, 0, len(entries))
	for _, e := range entries {
		if !e.gone {
			out = append(out, e.place)
		}
	}
	slices.SortFunc(out, func(a, b place) int { return cmp.Compare(a.at, b.at) })
	return out
}

// openLog opens a file, and reads which objects it has. It cuts off what a process left that died while it wrote.
func openLog(path string, seal *sealer, want header) (*replayed, error) {
	file, err := regularfile.OpenPrivate(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, errNoFile
	case err != nil:
		return nil, err
	}
	out, err := readLog(file, seal, want)
	if err != nil {
		file.Close()
		return nil, err
	}
	return out, nil
}

func readLog(file *os.File, seal *sealer, want header) (*replayed, error) {
	f := &frames{in: bufio.NewReaderSize(file, 256<<10), seal: seal}
	payload, _, err := f.next()
	if err != nil {
		return nil, errMalformed // also a file with another key, or one that was given up
	}
	var have header
	if err := json.Unmarshal(payload, &have); err != nil {
		return nil, errMalformed
	}
	if err := want.check(have); err != nil {
		return nil, err
	}
	out := &logFile{file: file, seal: seal}
	index, err := scan(f, out)
	if err != nil {
		return nil, err
	}
	out.size, out.link = f.at, f.link
	if err := file.Truncate(out.size); err != nil {
		return nil, err
	}
	return &replayed{file: out, version: out.version, index: indexOf(index)}, nil
}

// scan reads all records after the header, and finds the newest of each object. Like a reflector, it takes no older
// version for the newest.
func scan(f *frames, file *logFile) (map[api.Key]entry, error) {
	index := map[api.Key]entry{}
	for {
		payload, p, err := f.next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			if file.whole == 0 {
				return nil, fmt.Errorf("%w: its list has no end", errMalformed)
			}
			return index, nil
		case err != nil:
			return nil, err
		}
		r, err := decodeRecord(payload)
		if err != nil {
			return nil, err
		}
		listing := file.whole == 0
		if !listing || r.kind == whole {
			if err := file.reach(r.version); err != nil {
				return nil, fmt.Errorf("%w: %w", errMalformed, err)
			}
		}
		switch r.kind {
		case whole:
			file.whole = f.at
		case put, deleted:
			if before, ok := index[r.key]; ok {
				if order, ok := api.CompareVersions(r.version, before.version); ok && order < 0 {
					continue
				}
			}
			p.length = uint32(len(r.data))
			index[r.key] = entry{p, r.version, r.kind == deleted}
		}
	}
}

// newest reads the records of an index.
type newest struct {
	file   *logFile
	index  index  // of the records that follow
	window []byte // a part of the file, from the offset start
	start  int64
	buffer []byte // that the window is in
}

// readAhead is the number of bytes that newest reads at once.
const readAhead = 256 << 10

func (f *logFile) newest(of index) *newest { return &newest{file: f, index: of} }

// next returns the payload of the next record, which is valid until the next call, and the object in it. It returns
// io.EOF after the last one. It does not compare checksums: the reader of the index has done that.
func (n *newest) next() (payload, object []byte, err error) {
	if len(n.index) == 0 {
		return nil, nil, io.EOF
	}
	p := &n.index[0]
	n.index = n.index[1:]
	from := p.at + frameHead
	if end := from + int64(p.stored); end > n.start+int64(len(n.window)) {
		if err := n.read(from, int(p.stored)); err != nil {
			return nil, nil, err
		}
	}
	stored := n.window[from-n.start:][:p.stored]
	if payload, err = n.file.seal.open(stored, &p.link); err != nil {
		return nil, nil, errMalformed
	}
	return payload, payload[len(payload)-int(p.length):], nil
}

// read moves the window. It has at least the next bytes of the file, and more if there are more.
func (n *newest) read(from int64, least int) error {
	if size := max(least, int(min(readAhead, n.file.size-from))); size > cap(n.buffer) {
		n.buffer = make([]byte, size)
	}
	window := n.buffer[:cap(n.buffer)]
	got, err := n.file.file.ReadAt(window, from)
	if got < least {
		return cmp.Or(err, io.ErrUnexpectedEOF)
	}
	n.window, n.start = window[:got], from
	return nil
}

// compacted writes the newest states of a file to another one. spend is called with the bytes of each write.
func compacted(from *logFile, path string, spend func(int64) error) (_ *logFile, err error) {
	in := &frames{in: bufio.NewReaderSize(io.NewSectionReader(from.file, 0, from.size), 256<<10), seal: from.seal}
	head, _, err := in.next()
	if err != nil {
		return nil, err
	}
	to, err := createLog(path, from.seal)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			to.discard()
		}
	}()
	write := func(payload []byte) error {
		if err := spend(int64(len(payload))); err != nil {
			return err
		}
		return to.append(payload)
	}
	if err := write(head); err != nil {
		return nil, err
	}
	entries, err := scan(in, &logFile{})
	if err == nil && in.at != from.size { // somebody else has cut it off; the copy would lack changes before its version
		err = errMalformed
	}
	if err != nil {
		return nil, err
	}
	all := from.newest(indexOf(entries))
	for {
		payload, _, err := all.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = write(payload)
		}
		if err != nil {
			return nil, err
		}
	}
	to.version = from.version
	if err := write(record{kind: whole, version: from.version}.encode()); err != nil {
		return nil, err
	}
	to.whole = to.size
	return to, nil
}
