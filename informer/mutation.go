package informer

import "github.com/leatproject/leat/api"

// mutations watches over the objects of a cache, if somebody wants to know.
type mutations[T api.Object] struct{}

func (m *mutations[T]) observe(T) {}
func (m *mutations[T]) forget(T)  {}
func (m *mutations[T]) checkAll() {}
