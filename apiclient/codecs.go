package apiclient

import (
	"reflect"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

// ownTables is the number of codecs with tables of their own, which are in the processor's cache while a watch is busy.
// The codecs after them share tables. Otherwise 500 resources with 20 objects take 16 MB for tables.
const ownTables = 16

// codecOptions returns the options of a new codec.
func (c *Client) codecOptions() codec.Options {
	o := codec.Options{MaxObjectBytes: c.maxObjectBytes}
	if c.codecs.made.Add(1) > ownTables {
		o.Tables = c.codecs.tables()
	}
	return o
}

// codecs holds the codecs of a client that are in use. Clients of one type and one resource share a codec, because a
// codec takes several KB, and more with shared parts. Without sharing, informers for 10,000 namespaces would take tens
// of MB for codecs. The references are weak: a codec is freed with the last client that uses it. Its entry stays.
type codecs struct {
	all    sync.Map // from codecKey to weak.Pointer[codec.Codec[T]]
	made   atomic.Int64
	tables func() *codec.Tables // returns those of the codecs after the first ones
}

// codecKey identifies a codec. Two resources do not share one, because they have few parts in common.
type codecKey struct {
	object   reflect.Type
	resource api.Resource
}

// codecOf returns the client's codec for objects of a resource that are decoded as T. It panics if T is not a pointer
// to a struct.
func codecOf[T any](c *Client, r api.Resource) *codec.Codec[T] {
	key := codecKey{reflect.TypeFor[T](), r}
	for {
		known, _ := c.codecs.all.LoadOrStore(key, weak.Pointer[codec.Codec[T]]{})
		if shared := known.(weak.Pointer[codec.Codec[T]]).Value(); shared != nil {
			return shared
		}
		made := codec.New[T](c.codecOptions())
		if c.codecs.all.CompareAndSwap(key, known, weak.Make(made)) {
			return made
		} // otherwise another goroutine has made one meanwhile
	}
}
