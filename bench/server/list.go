package server

import (
	"fmt"
	"net/http"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/leatproject/leat/bench/load"
)

// chunk is the number of bytes of a list that are written at once.
const chunk = 64 << 10

// page is the part of the collection that a list returns, at one moment.
type page struct {
	asked
	version     uint64
	first, last int // indexes in the order of the collection
	order       []int
	versions    []uint64
	restarts    []uint32
}

func (s *Server) page(a asked) page {
	order := s.selected(a.shard)
	s.mu.Lock()
	defer s.mu.Unlock()
	p := page{asked: a, version: s.version(len(s.log)), first: min(a.first, len(order)), last: len(order), order: order}
	if a.limit > 0 {
		p.last = min(p.first+a.limit, p.last)
	}
	for _, pod := range p.order[p.first:p.last] {
		p.versions = append(p.versions, s.versions[pod])
		p.restarts = append(p.restarts, s.restarts[pod])
	}
	return p
}

// at returns the pod with an index, and its state.
func (p *page) at(place int) (pod int, state load.State) {
	return p.order[place], load.State{Version: p.versions[place-p.first], Restarts: p.restarts[place-p.first]}
}

// next returns the continue token and the number of remaining items. A list of a shard does not say that number.
func (p *page) next() (token string, remaining int) {
	if p.last == len(p.order) {
		return "", 0
	}
	return strconv.Itoa(p.last), len(p.order) - p.last
}

// says reports whether the list has a shardInfo. A list of metadata has none, as in kube-apiserver.
func (p *page) says() bool { return p.shard != nil && !p.metadata }

// kind returns the kind of the list.
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
	for place := p.first; place < p.last; place++ {
		pod, state := p.at(place)
		if p.protobuf {
			b = appendField(b, 2, s.set.Size(form, pod))
		} else if place > p.first {
			b = append(b, ',')
		}
		if b = s.set.Append(b, form, pod, state); len(b) >= chunk {
			if _, err := w.Write(b); err != nil {
				return // the client has gone
			}
			b = b[:0]
		}
	}
	if !p.protobuf {
		b = append(b, "]}\n"...)
	}
	_, _ = w.Write(b) // the client has gone, so the error does not matter
}

func beginJSONList(b []byte, p *page) []byte {
	apiVersion, kind := p.kind()
	b = fmt.Appendf(b, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"`, kind, apiVersion, p.version)
	if token, remaining := p.next(); token != "" {
		b = fmt.Appendf(b, `,"continue":%q`, token)
		if p.shard == nil {
			b = fmt.Appendf(b, `,"remainingItemCount":%d`, remaining)
		}
	}
	if p.says() {
		b = fmt.Appendf(b, `,"shardInfo":{"selector":%q}`, p.shard.selector)
	}
	return append(b, `},"items":[`...)
}

// magic begins every message of Kubernetes' protobuf except events of a watch.
const magic = "k8s\x00"

// beginProtobufList writes the envelope, a runtime.Unknown, up to the first item. Lengths precede their content.
func (s *Server) beginProtobufList(b []byte, p *page) []byte {
	token, remaining := p.next()
	metadata := appendText(nil, 2, strconv.FormatUint(p.version, 10))
	if token != "" {
		metadata = appendText(metadata, 3, token)
		if p.shard == nil {
			metadata = protowire.AppendVarint(protowire.AppendTag(metadata, 4, protowire.VarintType), uint64(remaining))
		}
	}
	if p.says() {
		metadata = appendField(metadata, 5, sizeField(1, len(p.shard.selector)))
		metadata = appendText(metadata, 1, p.shard.selector)
	}
	size := sizeField(1, len(metadata))
	for _, pod := range p.order[p.first:p.last] {
		size += sizeField(2, s.set.Size(p.form(), pod))
	}
	apiVersion, kind := p.kind()
	b = beginUnknown(b, apiVersion, kind, size)
	return append(appendField(b, 1, len(metadata)), metadata...)
}

// beginUnknown writes a runtime.Unknown up to its raw bytes; size is their number.
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

// appendField begins a field with size bytes.
func appendField(b []byte, number protowire.Number, size int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.BytesType), uint64(size))
}

func appendText(b []byte, number protowire.Number, text string) []byte {
	return append(appendField(b, number, len(text)), text...)
}

func sizeField(number protowire.Number, size int) int {
	return protowire.SizeTag(number) + protowire.SizeBytes(size)
}
