package recorder

import (
	"fmt"
	"time"
)

// RememberedAfter is how many series, reasons and objects are remembered after that many events, each of another object.
func RememberedAfter(n int) [3]int {
	c := newCorrelator()
	for i := range n {
		c.tell(told{identity: identity{regarding: reference{Name: fmt.Sprint(i)}}, at: time.Now()})
	}
	return [3]int{c.series.order.Len(), len(c.similar.items), len(c.objects.items)}
}
