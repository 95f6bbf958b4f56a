package apiclient

import (
	"reflect"
	"sync"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

// PartialOf is a PartialClient for a type that is known only at run time. T is an interface that the type implements,
// for example an interface that has the methods of all objects of a program.
type PartialOf[T api.Object] struct {
	PartialClient[T]
	object reflect.Type
	packer func() *codec.Packer[T]
}

// NewPartialOf returns a client of one resource whose objects are decoded as object, which is a pointer to a struct. It
// panics as NewPartial does, and if object does not implement T. Use In for further namespaces: clients that In returns
// share the codec, with its tables of strings and parts, and the Packer.
func NewPartialOf[T api.Object](c *Client, r api.Resource, namespace string, object reflect.Type) *PartialOf[T] {
	o := c.codecOptions()
	return &PartialOf[T]{
		PartialClient[T]{endpoint: newEndpoint(c, r, namespace), codec: codec.NewOf[T](object, o)},
		object,
		sync.OnceValue(func() *codec.Packer[T] { return codec.NewPackerOf[T](object, o) }),
	}
}

// In returns a client of the same resource that accesses only a namespace, or all namespaces if it is empty.
func (p *PartialOf[T]) In(namespace string) *PartialOf[T] {
	other := *p
	other.namespace = namespace
	return &other
}

// Packer returns the Packer of the objects, which the first call makes. Package packed uses it.
func (p *PartialOf[T]) Packer() *codec.Packer[T] { return p.packer() }

// Identity tells clients apart that decode into different types; see PartialClient.Identity.
func (p *PartialOf[T]) Identity() any {
	return struct {
		collection any
		object     reflect.Type
	}{p.PartialClient.Identity(), p.object}
}
