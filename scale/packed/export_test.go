package packed

import (
	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
)

// CodedAfter is Coded with another limit for the size of the plain objects that changed last.
func CodedAfter[T api.Object](fresh int, train Train) informer.Holding[T] {
	return &coded[T]{train, fresh}
}
