package hashrange_test

import (
	"fmt"

	"github.com/leatproject/leat/api/hashrange"
)

// printer is a Follower. A source would read the objects in the new ranges instead.
type printer struct{ before hashrange.Set }

func (p *printer) Follow(held hashrange.Set) {
	fmt.Printf("new: %s\n", held.Minus(p.before))
	fmt.Printf("kept: %.2f, gone: %.2f\n", held.Intersect(p.before).Share(), p.before.Minus(held).Share())
	p.before = held
}

// A replica that had the first half of all objects gets the second quarter's neighbour, and loses the first quarter.
func Example() {
	half := hashrange.NewSet(hashrange.Range{To: 1 << 63})
	var follower hashrange.Follower = &printer{before: half}
	quarter := hashrange.Range{To: 1 << 62}
	held := half.Minus(hashrange.NewSet(quarter)).Union(hashrange.NewSet(hashrange.Range{From: 1 << 63, To: 3 << 62}))
	follower.Follow(held)

	fmt.Println("team-a is here:", held.Contains(hashrange.Hash("team-a")), quarter.Contains(hashrange.Hash("team-a")))
	fmt.Println(held.Selector(hashrange.Namespace))
	parsed, err := hashrange.Parse(held.String())
	fmt.Println("the text has everything:", parsed.Equal(held), err)
	fmt.Println(quarter.Empty(), held.Empty(), hashrange.All().Minus(hashrange.All()).Empty(), hashrange.UID)
	// Output:
	// new: 0x8000000000000000-0xc000000000000000
	// kept: 0.25, gone: 0.25
	// team-a is here: false false
	// shardRange(object.metadata.namespace, '0x4000000000000000', '0xc000000000000000')
	// the text has everything: true <nil>
	// false false true object.metadata.uid
}
