package events

import (
	"fmt"
	"time"
)

// SizesAfter returns the numbers of remembered series, reasons and objects after n events, each about another object.
func SizesAfter(n int) [3]int {
	c := newCorrelator()
	for i := range n {
		c.add(queuedEvent{identity: identity{regarding: reference{Name: fmt.Sprint(i)}}, at: time.Now()})
	}
	return [3]int{c.series.order.Len(), len(c.similar.items), len(c.objects.items)}
}
