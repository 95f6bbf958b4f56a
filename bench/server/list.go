package server

import (
	"fmt"
	"net/http"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/leatproject/leat/bench/load"
)

// chunk is how much of a list is written at once.
const chunk = 64 << 10

// page is the part of the collection that a list answers with, as it is at one moment.
type page struct {
	asked
	version     uint64
	first, last int
	total       int
	versions    []uint64
	restarts    []uint32
}

func (s *Server) page(a asked) page {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := page{asked: a, version: s.version(len(s.log)), first: min(a.first, s.o.Objects), last: s.o.Objects, total: s.o.Objects}
	if a.limit > 0 {
		p.last = min(p.first+a.limit, p.last)
	}
	p.versions = append(p.versions, s.versions[p.first:p.last]...)
	p.restarts = append(p.restarts, s.restarts[p.first:p.last]...)
	return p
}

func (p *page) state(i int) load.State {
	return load.State{Version: p.versions[i-p.first], Restarts: p.restarts[i-p.first]}
}

// next is the continue token and the number of items that remain.
func (p *page) next() (token string, remaining int) {
	if p.last == p.total {
		return "", 0
	}
	return strconv.Itoa(p.last), p.total - p.last
}

// kind is that of the list.
func (p *page) kind() (apiVersion, kind string) {
	if p.metadata {
		return "meta.k8s.io/v1", "PartialObjectMetadataList"
	}
	return "v1", "PodList"
}

func (s *Server) list(w http.ResponseWriter, a asked) {
	p := s.page(a)
	b := make([]byte, 0, chunk+16<<10)
	if p.protobuf {
		b = s.beginProtobufList(b, &p)
	} else {
		b = beginJSONList(b, &p)
	}
	form := p.form()
	for i := p.first; i < p.last; i++ {
		if p.protobuf {
			b = appendField(b, 2, s.set.Size(form, i))
		} else if i > p.first {
			b = append(b, ',')
		}
		if b = s.set.Append(b, form, i, p.state(i)); len(b) >= chunk {
			if _, err := w.Write(b); err != nil {
				return // the client has gone
			}
			b = b[:0]
		}
	}
	if !p.protobuf {
		b = append(b, "]}\n"...)
	}
	_, _ = w.Write(b) // a client that has gone needs no answer
}

func beginJSONList(b []byte, p *page) []byte {
	apiVersion, kind := p.kind()
	b = fmt.Appendf(b, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"`, kind, apiVersion, p.version)
	if token, remaining := p.next(); token != "" {
		b = fmt.Appendf(b, `,"continue":%q,"remainingItemCount":%d`, token, remaining)
	}
	return append(b, `},"items":[`...)
}

// magic begins everything in Kubernetes' protobuf that is not an event of a watch.
const magic = "k8s\x00"

// beginProtobufList writes the envelope, runtime.Unknown, up to the first item. Lengths stand before what they count.
func (s *Server) beginProtobufList(b []byte, p *page) []byte {
	token, remaining := p.next()
	metadata := appendText(nil, 2, strconv.FormatUint(p.version, 10))
	if token != "" {
		metadata = appendText(metadata, 3, token)
		metadata = protowire.AppendVarint(protowire.AppendTag(metadata, 4, protowire.VarintType), uint64(remaining))
	}
	size := sizeField(1, len(metadata))
	for i := p.first; i < p.last; i++ {
		size += sizeField(2, s.set.Size(p.form(), i))
	}
	apiVersion, kind := p.kind()
	b = beginUnknown(b, apiVersion, kind, size)
	return append(appendField(b, 1, len(metadata)), metadata...)
}

// beginUnknown writes a runtime.Unknown up to its raw bytes, of which there will be so many.
func beginUnknown(b []byte, apiVersion, kind string, size int) []byte {
	b = append(b, magic...)
	typeMeta := appendText(appendText(nil, 1, apiVersion), 2, kind)
	b = append(appendField(b, 1, len(typeMeta)), typeMeta...)
	return appendField(b, 2, size)
}

func sizeUnknown(apiVersion, kind string, size int) int {
	typeMeta := sizeField(1, len(apiVersion)) + sizeField(2, len(kind))
	return len(magic) + sizeField(1, typeMeta) + sizeField(2, size)
}

// appendField begins a field of so many bytes.
func appendField(b []byte, number protowire.Number, size int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.BytesType), uint64(size))
}

func appendText(b []byte, number protowire.Number, text string) []byte {
	return append(appendField(b, number, len(text)), text...)
}

func sizeField(number protowire.Number, size int) int {
	return protowire.SizeTag(number) + protowire.SizeBytes(size)
}
