package packed

import (
	"bytes"
	"context"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/informer"
)

// Train returns two functions that encode and decode the bytes of objects like the samples. Both append to dst and must
// not keep src. decode must be safe for concurrent use; encode is called on one goroutine. An error means that the
// samples do not suffice; the objects then stay plain.
type Train = func(samples [][]byte) (encode func(dst, src []byte) []byte, decode func(dst, src []byte) ([]byte, error), err error)

// Coded returns a Holding that keeps each object as the bytes in which it arrived, encoded by what train has returned
// for objects of the same collection: a compression with a dictionary of its own. Package zstd of the module
// github.com/leatproject/leat/scale/packed/zstd has one.
//
// The first objects of the first list are the samples. Later objects use the same encoding. If they resemble the
// samples less, they compress less; a new informer trains with the objects of its own time.
//
// Objects of a list are encoded at once. Objects that have changed stay plain up to a total of 4 MiB. Beyond that,
// those whose last change is the oldest are encoded. So an object that changes often, such as a pod that starts, is
// seldom encoded. With a Transform, all objects are encoded at once.
func Coded[T api.Object](train Train) informer.Holding[T] {
	if train == nil {
		panic("packed: Coded needs a function that trains")
	}
	return &coded[T]{train, freshBytes}
}

// coded is a pointer, so that two users share an informer only if they use one value.
type coded[T api.Object] struct {
	train Train
	fresh int // see encoder
}

// Hold implements informer.Holding.
func (c *coded[T]) Hold(lw api.ListerWatcher[T], o informer.Options[T]) informer.Held[T] {
	e := &encoder{train: c.train, limit: c.fresh}
	added := e.add
	if o.Transform != nil {
		added = nil // the object is decoded once more, so it is encoded after that
	}
	source, k := sourceOf(lw, added)
	if added != nil {
		source = &encodingSource{api.Wrapper[*codec.Packed]{ListerWatcher: source}, e}
	}
	return informer.HoldAs(o, formOf(source, k, e.add))
}

const (
	// enoughSamples is the number of objects that are trained with.
	enoughSamples = 512
	// fewestSamples is the number of objects that suffices at the end of the first list.
	fewestSamples = 32
)

// encoder encodes objects as they arrive. It belongs to the goroutine of the reflector.
type encoder struct {
	train  Train
	coding *codec.Coding // nil before the training

	waiting []*codec.Packed // objects of the first list that no one else has yet
	holding bool            // new objects wait for the training

	watching bool // new objects are those of single events, and not of a list
	fresh    fresh
	limit    int // of the size of fresh
	buffer   []byte

	samples [][]byte // plain bytes for the training
}

// add encodes a new object, or keeps it plain until the encoder is trained.
func (e *encoder) add(p *codec.Packed, plain []byte) {
	if e.coding == nil {
		if len(e.samples) < enoughSamples {
			e.samples = append(e.samples, bytes.Clone(plain))
		}
		if !e.holding {
			e.learn(enoughSamples)
		}
	}
	switch {
	case e.coding == nil:
		p.Keep(plain)
		if e.holding {
			e.waiting = append(e.waiting, p)
		}
	case e.watching:
		p.Delay(plain)
		e.fresh.put(p)
		for e.fresh.size > e.limit {
			oldest := e.fresh.takeOldest()
			data, _ := oldest.Data()
			e.buffer = append(e.buffer[:0], data...)
			e.coding.Encode(oldest, e.buffer)
		}
	default:
		e.fresh.remove(api.KeyOf(p))
		e.coding.Encode(p, plain)
	}
}

// learn trains with the samples if there are enough.
func (e *encoder) learn(enough int) {
	if len(e.samples) < enough {
		return
	}
	samples := e.samples
	e.samples = nil
	if encode, decode, err := e.train(samples); err == nil {
		e.coding = codec.NewCoding(encode, decode)
	}
}

// release trains and encodes the waiting objects. They stay plain if they are too few.
func (e *encoder) release(enough int) {
	e.learn(enough)
	if e.coding != nil {
		for _, p := range e.waiting {
			plain, _ := p.Data()
			e.coding.Encode(p, []byte(plain))
		}
	}
	e.waiting = nil
}

// encodingSource holds the first objects of the first list back until the encoder is trained, so that they are encoded
// too.
type encodingSource struct {
	api.Wrapper[*codec.Packed]
	encoder *encoder
}

// List lists the source. The objects that wait for a training are passed on together. A list of one object may be a
// probe, which runs beside a watch.
func (s *encodingSource) List(ctx context.Context, o api.Options[*codec.Packed], each func(*codec.Packed) error) (metav1.ListMeta, error) {
	if o.Limit == 1 {
		return s.ListerWatcher.List(ctx, o, each)
	}
	h := holder[*codec.Packed]{encoder: s.encoder, pass: each}
	h.begin()
	defer h.end()
	meta, err := s.ListerWatcher.List(ctx, o, h.add)
	if flushErr := h.flush(fewestSamples); err == nil {
		err = flushErr
	}
	return meta, err
}

// Watch watches the source. The initial objects of a WatchList wait as those of a list.
func (s *encodingSource) Watch(ctx context.Context, o api.Options[*codec.Packed]) iter.Seq2[api.Event[*codec.Packed], error] {
	events := s.ListerWatcher.Watch(ctx, o)
	if o.SendInitialEvents == nil || !*o.SendInitialEvents {
		return func(yield func(api.Event[*codec.Packed], error) bool) {
			s.encoder.watching = true
			defer func() { s.encoder.watching = false }()
			events(yield)
		}
	}
	return func(yield func(api.Event[*codec.Packed], error) bool) {
		defer func() { s.encoder.watching = false }()
		stopped := false
		h := holder[api.Event[*codec.Packed]]{encoder: s.encoder, pass: func(e api.Event[*codec.Packed]) error {
			if !yield(e, nil) {
				stopped = true
				return context.Canceled
			}
			return nil
		}}
		h.begin()
		defer h.end()
		for event, err := range events {
			switch {
			case err != nil:
				if h.flush(fewestSamples) == nil {
					yield(event, err)
				}
				return
			case event.InitialEventsEnd:
				_ = h.flush(fewestSamples)
				h.end()
				s.encoder.watching = true
			}
			if !stopped {
				_ = h.add(event)
			}
			if stopped {
				return
			}
		}
		_ = h.flush(fewestSamples)
	}
}

// holder holds the elements of a list back while the encoder has no Coding.
type holder[E any] struct {
	encoder *encoder
	pass    func(E) error
	held    []E
}

func (h *holder[E]) begin() { h.encoder.holding = h.encoder.coding == nil }

func (h *holder[E]) end() { h.encoder.holding, h.encoder.waiting = false, nil }

// add passes an element on, or holds it back.
func (h *holder[E]) add(element E) error {
	if !h.encoder.holding {
		return h.pass(element)
	}
	h.held = append(h.held, element)
	if len(h.encoder.waiting) < enoughSamples {
		return nil
	}
	return h.flush(enoughSamples)
}

// flush trains and passes on what was held back. Later elements are held back only if the training failed.
func (h *holder[E]) flush(enough int) error {
	if h.encoder.holding {
		h.encoder.release(enough)
		h.encoder.holding = h.encoder.coding == nil
	}
	held := h.held
	h.held = nil
	for _, element := range held {
		if err := h.pass(element); err != nil {
			return err
		}
	}
	return nil
}
