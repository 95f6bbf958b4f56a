package apiclient

import (
	"reflect"
	"sync"
	"weak"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

// codecs holds the codecs of a client that are in use. Clients of one type and one resource share a codec, because a
// codec takes up to 120 KB, mostly for strings that it remembers. Without sharing, informers for 10,000 namespaces
// would take up to 1.2 GB for codecs. The references are weak: a codec is freed with the last client that uses it. Its
// entry stays.
type codecs struct{ all sync.Map } // from codecKey to weak.Pointer[codec.Codec[T]]

// codecKey identifies a codec. Two resources do not share one, because they have few strings in common.
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
		made := codec.New[T](codec.Options{MaxObjectBytes: c.maxObjectBytes})
		if c.codecs.all.CompareAndSwap(key, known, weak.Make(made)) {
			return made
		} // otherwise another goroutine has made one meanwhile
	}
}
