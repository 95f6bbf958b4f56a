package reflector_test

import (
	"context"
	"fmt"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/deltafifo"
	"github.com/leatproject/leat/reflector"
)

// shelf is a server with two objects. One of them changes.
type shelf struct{}

func (shelf) Collection() api.Collection { return api.Collection{Resource: things} }

func (shelf) List(_ context.Context, o api.Options[*thing], each func(*thing) error) (metav1.ListMeta, error) {
	fmt.Printf("server: list at version %q\n", o.ResourceVersion)
	for _, t := range []*thing{at("bowl", "3"), at("cup", "5")} {
		if err := each(t); err != nil {
			return metav1.ListMeta{}, err
		}
	}
	return metav1.ListMeta{ResourceVersion: "5"}, nil
}

func (shelf) Watch(ctx context.Context, o api.Options[*thing]) iter.Seq2[api.Event[*thing], error] {
	return func(yield func(api.Event[*thing], error) bool) {
		fmt.Printf("server: watch from version %q\n", o.ResourceVersion)
		if !yield(api.Event[*thing]{Type: apiwatch.Modified, Object: at("cup", "6"), ResourceVersion: "6"}, nil) {
			return
		}
		<-ctx.Done()
		yield(api.Event[*thing]{}, ctx.Err())
	}
}

func Example() {
	fifo := deltafifo.New[*thing]()
	r := reflector.New(shelf{}, fifo, reflector.Options[*thing]{Tuning: reflector.Tuning{NoWatchList: true}})

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- r.Run(ctx) }()

	state := map[string]*thing{}
	for version := ""; version != "6"; {
		_ = fifo.Pop(ctx, func(b deltafifo.Batch[*thing]) {
			for _, o := range b.Objects {
				state[o.Key.Name] = o.Changes[len(o.Changes)-1].Object
			}
			version = b.ResourceVersion
		})
	}
	fmt.Println("state:", state)
	cancel()
	fmt.Println("ended:", <-ended)
	// Output:
	// server: list at version "0"
	// server: watch from version "5"
	// state: map[bowl:bowl@3 cup:cup@6]
	// ended: <nil>
}
