package informer_test

import (
	"context"
	"fmt"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/informer/factory"
)

// An informer runs until its context ends. A channel reports that it is synced.
func Example() {
	widgets := newSource()
	widgets.set("a", 1)
	i := informer.New(widgets, informer.Options[*widget]{})

	events := make(chan string)
	_, err := i.AddEventHandler(informer.HandlerFuncs[*widget]{
		AddFunc:    func(w *widget, initial bool) { events <- fmt.Sprintf("added %s, initially: %v", w.Name, initial) },
		UpdateFunc: func(old, w *widget) { events <- fmt.Sprintf("%s went from %d to %d", w.Name, old.Size, w.Size) },
		DeleteFunc: func(d informer.DeletedObject[*widget]) { events <- "deleted " + d.Object.Name },
	}, informer.HandlerOptions{})
	if err != nil {
		panic(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- i.Run(ctx) }()
	fmt.Println(<-events)
	widgets.set("a", 2)
	fmt.Println(<-events)
	widgets.remove("a")
	fmt.Println(<-events)
	cancel()
	fmt.Println(<-ended)
	// Output:
	// added a, initially: true
	// a went from 1 to 2
	// deleted a
	// <nil>
}

// The result of AddIndex reads the index.
func ExampleAddIndex() {
	widgets := newSource()
	widgets.set("a", 1)
	widgets.set("b", 1)
	widgets.set("c", 7)
	i := informer.New(widgets, informer.Options[*widget]{})
	bySize := informer.AddIndex(i, func(w *widget) []int { return []int{w.Size} })

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- i.Run(ctx) }()
	<-i.Synced()
	fmt.Println(bySize.Len(1), bySize.Len(7), bySize.Len(8))
	cancel()
	<-ended
	// Output: 2 1 0
}

// Updates that change the result of the filter become additions and deletions.
func ExampleFiltered() {
	large := informer.Filtered(func(w *widget) bool { return w.Size > 5 }, informer.HandlerFuncs[*widget]{
		AddFunc:    func(w *widget, _ bool) { fmt.Println("grew:", w.Size) },
		DeleteFunc: func(d informer.DeletedObject[*widget]) { fmt.Println("was large:", d.Object.Size) },
	})
	one, seven := &widget{Size: 1}, &widget{Size: 7}
	large.OnAdd(one, false)
	large.OnUpdate(one, seven)
	large.OnUpdate(seven, one)
	// Output:
	// grew: 7
	// was large: 7
}

// Users of the same collection share one informer. It stops when the last of them releases it.
func Example_factory() {
	shared := factory.New(factory.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- shared.Run(ctx) }()

	widgets := newSource()
	first, err := factory.Shared(shared, widgets, informer.Options[*widget]{})
	if err != nil {
		panic(err)
	}
	second, err := factory.Shared(shared, widgets, informer.Options[*widget]{})
	if err != nil {
		panic(err)
	}
	fmt.Println(first.Informer == second.Informer)
	if err := first.WaitFor(ctx, widgets.set("a", 1)); err != nil {
		panic(err)
	}
	_, cached := second.Cache().Get(api.Key{Namespace: "default", Name: "a"})
	fmt.Println(cached)
	first.Release()
	second.Release()
	<-second.Done()
	cancel()
	fmt.Println(<-ended)
	// Output:
	// true
	// true
	// <nil>
}
