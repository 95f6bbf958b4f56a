package livepage

import (
	"encoding/json"
	"time"
)

const (
	sampleSize  = 8
	sampleEvery = 30 * time.Second
)

// sizes is a sample of the objects of a cache.
type sizes struct {
	at    time.Time
	bytes int // of all objects of the sample in JSON
	n     int
}

// sample returns the sizes of some objects in JSON. It measures at most every 30 seconds, and only when somebody looks.
// The memory of an object is another number, which cannot be read: a struct has other fields and shares texts.
func (s *shownInformer) sample() sizes {
	last := s.sizes.Load()
	if last != nil && time.Since(last.at) < sampleEvery && last.n > 0 {
		return *last
	}
	next := &sizes{at: time.Now()}
	if inspect, ok := s.informer.(inspectable); ok {
		for key := range inspect.Keys() { // their order does not depend on names or ages
			if next.n == sampleSize {
				break
			}
			object, found := inspect.Lookup(key)
			if !found {
				continue
			}
			if text, err := json.Marshal(object); err == nil {
				next.bytes, next.n = next.bytes+len(text), next.n+1
			}
		}
	}
	s.sizes.Store(next)
	return *next
}
