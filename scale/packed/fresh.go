package packed

import (
	"container/list"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

const (
	// freshBytes is the largest size of fresh. A cache of 50,000 pods has up to 84 bytes a pod more for it.
	freshBytes = 4 << 20
	// freshCost is what an object in fresh takes besides its bytes.
	freshCost = 256
)

// fresh has the objects that changed last, which are still plain. Of each object it has only the newest state: an
// earlier one is never encoded.
type fresh struct {
	objects list.List // of *codec.Packed, by the time of the last change
	at      map[api.Key]*list.Element
	size    int // of all objects, in bytes
}

// put adds the newest state of an object, in place of an earlier one.
func (f *fresh) put(p *codec.Packed) {
	key := api.KeyOf(p)
	f.remove(key)
	if f.at == nil {
		f.at = map[api.Key]*list.Element{}
	}
	f.at[key] = f.objects.PushBack(p)
	f.size += p.Len() + freshCost
}

func (f *fresh) remove(key api.Key) {
	if at, ok := f.at[key]; ok {
		delete(f.at, key)
		f.size -= f.objects.Remove(at).(*codec.Packed).Len() + freshCost
	}
}

// takeOldest removes the object whose last change is the oldest, and returns it. There must be one.
func (f *fresh) takeOldest() *codec.Packed {
	p := f.objects.Front().Value.(*codec.Packed)
	f.remove(api.KeyOf(p))
	return p
}
