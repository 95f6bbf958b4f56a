package deltafifo_test

import (
	"context"
	"fmt"

	"github.com/leatproject/leat/deltafifo"
)

// The producer puts in a list, changes and a second list. The consumer pops twice.
func Example() {
	q := deltafifo.New[*thing]()
	show := func(b deltafifo.Batch[*thing]) {
		fmt.Printf("batch up to version %s, completes the first list: %t\n", b.ResourceVersion, b.InitialList)
		for _, o := range b.Objects {
			for _, c := range o.Changes {
				fmt.Println(" ", line(c))
			}
		}
	}
	a := at("a", "1")
	q.Replace([]*thing{a, at("b", "2")}, "3")
	q.Put(at("b", "4"), "4")
	_ = q.Pop(context.Background(), show)

	q.Put(at("c", "5"), "5")
	q.Delete(at("b", "6"), "6")
	q.Replace([]*thing{a, incarnation("c", "another", "8")}, "9")
	_ = q.Pop(context.Background(), show)
	// Output:
	// batch up to version 4, completes the first list: true
	//   Added ns/a#uid-a@1 initial
	//   Added ns/b#uid-b@2 initial
	//   Updated ns/b#uid-b@4 from @2
	// batch up to version 9, completes the first list: false
	//   Added ns/c#uid-c@5
	//   Deleted ns/c#uid-c@5 final state unknown
	//   Added ns/c#another@8
	//   Deleted ns/b#uid-b@6
}

// Pop takes all changes. It ends with its context.
func ExampleDeltaFIFO_Pop() {
	q := deltafifo.New[*thing]()
	q.Replace(nil, "1")
	q.Put(at("a", "2"), "2")
	ctx, cancel := context.WithCancel(context.Background())
	for {
		err := q.Pop(ctx, func(b deltafifo.Batch[*thing]) {
			fmt.Println(lines(b))
			cancel()
		})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	// Output:
	// [Added ns/a#uid-a@2]
	// context canceled
}
