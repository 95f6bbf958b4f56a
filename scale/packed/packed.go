package packed

import (
	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/informer"
)

// Bytes returns a Holding that keeps each object as the bytes in which it arrived, without managedFields unless
// informer.Options.KeepManagedFields is set.
func Bytes[T api.Object]() informer.Holding[T] { return plain[T]{} }

type plain[T api.Object] struct{}

// Hold implements informer.Holding.
func (plain[T]) Hold(lw api.ListerWatcher[T], o informer.Options[T]) informer.Held[T] {
	source, k := sourceOf(lw, nil)
	return informer.HoldAs(o, formOf(source, k, nil))
}

// formOf returns the form of objects that k packs and unpacks. keep may be nil; see codec.Packer.Codec.
func formOf[T api.Object](source api.ListerWatcher[*codec.Packed], k *codec.Packer[T], keep func(*codec.Packed, []byte)) informer.Form[T, *codec.Packed] {
	recent := &recent[T]{unpack: unpacked(k.Unpack)}
	return informer.Form[T, *codec.Packed]{
		Source:     source,
		Unpack:     recent.unpack,
		Share:      recent.get,
		Identities: func() func(*codec.Packed) T { return unpacked(k.Identities()) },
		Pack: func(object T) (*codec.Packed, error) {
			p, err := k.Pack(object)
			if err == nil && keep != nil {
				again(p, keep)
			}
			return p, err
		},
	}
}

// unpacked returns a function without an error. The codec has checked that each object can be decoded before it was
// cached, so an error is a bug, or broken memory.
func unpacked[T any](unpack func(*codec.Packed) (T, error)) func(*codec.Packed) T {
	return func(p *codec.Packed) T {
		object, err := unpack(p)
		if err != nil {
			panic(err)
		}
		return object
	}
}

// again calls keep with an object that keeps its plain bytes already.
func again(p *codec.Packed, keep func(*codec.Packed, []byte)) {
	if plain, ok := p.Data(); ok {
		keep(p, []byte(plain))
	}
}
