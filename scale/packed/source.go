package packed

import (
	"context"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

// packerOf returns the Packer of the objects of lw. A ListerWatcher whose objects have a type that is known only at run
// time has its own, such as an apiclient.PartialOf.
func packerOf[T api.Object](lw api.ListerWatcher[T], o codec.Options) *codec.Packer[T] {
	if own, ok := api.As[codec.PackerSource[T]](lw); ok {
		return own.Packer()
	}
	return codec.NewPacker[T](o)
}

// sourceOf returns the objects of lw as bytes, and the Packer that unpacks them. keep is called with each new object
// and its plain bytes, and may be nil; see codec.Packer.Codec.
func sourceOf[T api.Object](lw api.ListerWatcher[T], keep func(*codec.Packed, []byte)) (source api.ListerWatcher[*codec.Packed], k *codec.Packer[T]) {
	if p, ok := lw.(codec.PackedSource); ok {
		source = p.Packed(func(o codec.Options) *codec.Codec[*codec.Packed] {
			k = packerOf(lw, o)
			return k.Codec(keep)
		})
		if source != nil {
			return source, k
		}
	}
	k = packerOf(lw, codec.Options{})
	return &encoding[T]{lw, k, keep}, k
}

// encoding packs the objects of a ListerWatcher that decodes them itself. It is for sources that are not an API server.
type encoding[T api.Object] struct {
	lw     api.ListerWatcher[T]
	packer *codec.Packer[T]
	keep   func(*codec.Packed, []byte) // may be nil
}

// Collection returns the collection of the source.
func (e *encoding[T]) Collection() api.Collection { return e.lw.Collection() }

// Unwrap returns the source. Its capabilities that depend on the type of the objects do not fit those of an encoding.
func (e *encoding[T]) Unwrap() any { return e.lw }

// options returns the options for the source. It has no Known, because the source could only return decoded objects.
func (e *encoding[T]) options(o api.Options[*codec.Packed]) api.Options[T] {
	return api.Options[T]{
		ListOptions: o.ListOptions, DropManagedFields: o.DropManagedFields, Keep: o.Keep, OnUndecodable: o.OnUndecodable,
		OnOpen: o.OnOpen, OnWait: o.OnWait,
	}
}

// List lists the source and packs each object.
func (e *encoding[T]) List(ctx context.Context, o api.Options[*codec.Packed], each func(*codec.Packed) error) (metav1.ListMeta, error) {
	return e.lw.List(ctx, e.options(o), func(object T) error {
		if o.Keep != nil && !o.Keep([]byte(object.GetNamespace()), []byte(object.GetUID())) {
			return nil // the source ignores Keep
		}
		p, err := e.pack(object, "", o.OnUndecodable)
		if p == nil || err != nil {
			return err
		}
		return each(p)
	})
}

// Watch watches the source and packs the object of each event.
func (e *encoding[T]) Watch(ctx context.Context, o api.Options[*codec.Packed]) iter.Seq2[api.Event[*codec.Packed], error] {
	return func(yield func(api.Event[*codec.Packed], error) bool) {
		for event, err := range e.lw.Watch(ctx, e.options(o)) {
			packed := api.Event[*codec.Packed]{
				Type: event.Type, ResourceVersion: event.ResourceVersion, InitialEventsEnd: event.InitialEventsEnd,
			}
			switch event.Type {
			case watch.Added, watch.Modified, watch.Deleted:
				if err == nil {
					packed.Object, err = e.pack(event.Object, event.Type, o.OnUndecodable)
					if packed.Object == nil && err == nil {
						continue
					}
				}
			}
			if !yield(packed, err) || err != nil {
				return
			}
		}
	}
}

// pack packs an object. If that fails, it reports the object as undecodable and returns nil.
func (e *encoding[T]) pack(object T, event watch.EventType, report func(*api.UndecodableError) error) (*codec.Packed, error) {
	p, err := e.packer.Pack(object)
	if err == nil {
		if e.keep != nil {
			again(p, e.keep)
		}
		return p, nil
	}
	undecodable := &api.UndecodableError{
		Resource: e.lw.Collection().Resource, Key: api.KeyOf(object), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
		Type: event, Err: err,
	}
	if report == nil {
		return nil, undecodable
	}
	return nil, report(undecodable)
}
