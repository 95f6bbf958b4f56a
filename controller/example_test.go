package controller_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/predicate"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/workqueue"
)

// runAll runs the functions of an example until the returned function is called.
func runAll(runs ...func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, len(runs))
	for _, run := range runs {
		go func() { ended <- run(ctx) }()
	}
	return func() {
		cancel()
		for range runs {
			if err := <-ended; err != nil {
				fmt.Println(err)
			}
		}
	}
}

// A controller greets every thing and reacts to changes of its spec, but ignores the thing called "secret".
func Example() {
	server := new(cluster).collection(things)
	server.apply(named("mill"))
	server.apply(named("secret"))
	inf := informer.New(server, informer.Options[*thing]{Tuning: reflector.Tuning{NoWatchList: true}})

	greeted := make(chan string)
	c := controller.New("greeter", controller.Func[api.Key](func(_ context.Context, key api.Key) (controller.Result, error) {
		object, found := inf.Cache().Get(key)
		if !found {
			greeted <- "good-bye, " + key.Name
			return controller.Result{}, nil
		}
		greeted <- "hello, " + object.Name + object.Spec
		return controller.Result{}, nil
	}), controller.Options{Workers: 2})
	isSecret := func(object *thing) bool { return object.Name == "secret" }
	c.Watch(controller.For(inf).When(predicate.GenerationChanged).Unless(predicate.Object(isSecret)))

	stop := runAll(inf.Run, c.Run)
	fmt.Println(<-greeted)
	turning := named("mill")
	turning.Spec = " that turns"
	server.apply(turning)
	fmt.Println(<-greeted)
	server.delete("mill")
	fmt.Println(<-greeted)
	stop()
	// Output:
	// hello, mill
	// hello, mill that turns
	// good-bye, mill
}

// A change of an owned object reconciles its owner.
func ExampleOwns() {
	var c cluster
	ownersServer, thingsServer := c.collection(owners), c.collection(things)
	mill := ownersServer.apply(named("mill"))
	ownersInf, thingsInf := ownersServer.informer(), thingsServer.informer()

	reconciled := make(chan string)
	ctl := controller.New("mills", controller.Func[api.Key](func(ctx context.Context, key api.Key) (controller.Result, error) {
		cause := controller.Causes(ctx)[0]
		reconciled <- fmt.Sprintf("%s because of %s of %s in %s", key.Name, cause.Event, cause.Object, cause.Source)
		return controller.Result{}, nil
	}), controller.Options{})
	ctl.Watch(controller.For(ownersInf))
	ctl.Watch(controller.Owns(ownersInf, thingsInf))

	stop := runAll(ownersInf.Run, thingsInf.Run, ctl.Run)
	fmt.Println(<-reconciled)
	thingsServer.apply(ownedBy("wheel", mill))
	fmt.Println(<-reconciled)
	stop()
	// Output:
	// mill because of initial of default/mill in owners.apps
	// mill because of add of default/wheel in things (owned by owners.apps)
}

// Keys may have any comparable type, and an object may stand for any number of keys.
func ExampleMap() {
	server := new(cluster).collection(things)
	inf := server.informer()
	reconciled := make(chan int)
	c := controller.New("lengths", controller.Func[int](func(_ context.Context, length int) (controller.Result, error) {
		reconciled <- length
		return controller.Result{}, nil
	}), controller.Options{})
	c.Watch(controller.Map(inf, func(object *thing) []int { return []int{len(object.Name)} }))

	stop := runAll(inf.Run, c.Run)
	server.apply(named("mill"))
	fmt.Println(<-reconciled)
	stop()
	// Output: 4
}

// With several clusters, the key contains the name of the cluster.
func ExampleMap_clusters() {
	type place struct {
		Cluster string
		Key     api.Key // not embedded: the key would get its String method, and logs would not name the cluster
	}
	reconciled := make(chan place)
	ctl := controller.New("mills", controller.Func[place](func(_ context.Context, p place) (controller.Result, error) {
		reconciled <- p
		return controller.Result{}, nil
	}), controller.Options{})
	runs := []func(context.Context) error{ctl.Run}
	servers := map[string]*collection{}
	for _, name := range []string{"east", "west"} {
		servers[name] = new(cluster).collection(things)
		inf := servers[name].informer()
		runs = append(runs, inf.Run)
		ctl.Watch(controller.Map(inf, func(object *thing) []place {
			return []place{{Cluster: name, Key: api.KeyOf(object)}}
		}).Named(name))
	}

	stop := runAll(runs...)
	servers["west"].apply(named("mill"))
	fmt.Println(<-reconciled)
	servers["east"].apply(named("mill"))
	fmt.Println(<-reconciled)
	stop()
	// Output:
	// {west default/mill}
	// {east default/mill}
}

// A tracer wraps another Reconciler and adds a span to its context. The log and the Report contain the same identifier.
func ExampleReconcileID() {
	type span struct{}
	inner := controller.Func[string](func(ctx context.Context, _ string) (controller.Result, error) {
		fmt.Println("in the span", ctx.Value(span{}) == controller.ReconcileID(ctx))
		return controller.Result{}, nil
	})
	traced := controller.Func[string](func(ctx context.Context, key string) (controller.Result, error) {
		fmt.Println("begin", key, "because of", controller.Causes(ctx)[0].Event)
		defer fmt.Println("end", key)
		return inner.Reconcile(context.WithValue(ctx, span{}, controller.ReconcileID(ctx)), key)
	})
	done := make(chan struct{})
	c := controller.New("mills", traced, controller.Options{})
	c.Trace(controller.Trace{Reconciled: func(controller.Reconciled) { close(done) }})
	stop := runAll(c.Run)
	c.Add("mill", workqueue.Item{Cause: workqueue.Cause{Source: "http", Event: "request"}})
	<-done
	stop()
	// Output:
	// begin mill because of request
	// in the span true
	// end mill
}

// A reconciler of objects gets the object. Build reports all errors of a Spec at once.
func ExampleSpec() {
	server := new(cluster).collection(things)
	inf := server.informer()
	greeted := make(chan string)
	greet := controller.ObjectFunc[*thing](func(_ context.Context, object *thing) (controller.Result, error) {
		greeted <- "hello, " + object.Name
		return controller.Result{}, nil
	})
	spec := controller.Spec[api.Key]{
		Name:       "greeter",
		Reconciler: controller.Objects(inf.Cache(), greet),
		Options:    controller.Options{Workers: -2, MaxRetries: -1},
	}
	_, err := spec.Build()
	fmt.Println(err)

	spec.Options = controller.Options{Workers: 2}
	spec.Sources = []controller.Source[api.Key]{controller.For(inf).When(predicate.GenerationChanged)}
	c, err := spec.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	stop := runAll(inf.Run, c.Run)
	server.apply(named("mill"))
	fmt.Println(<-greeted)
	stop()
	// Output:
	// controller: greeter: Workers is -2; it must not be negative
	// controller: greeter: MaxRetries is -1; it must not be negative
	// controller: greeter: there is no source: Sources is empty
	// hello, mill
}

// Why tells why a controller did something. DebugHandler serves the same data.
func ExampleController_Why() {
	done := make(chan struct{}, 2)
	attempts := 0
	c := controller.New("mills", controller.Func[string](func(context.Context, string) (controller.Result, error) {
		if attempts++; attempts == 1 {
			return controller.Result{}, errors.New("no water")
		}
		return controller.Result{}, nil
	}), controller.Options{})
	c.Trace(controller.Trace{Reconciled: func(controller.Reconciled) { done <- struct{}{} }})
	stop := runAll(c.Run)
	c.Add("mill", workqueue.Item{Cause: workqueue.Cause{Source: "http", Event: "request"}})
	<-done
	<-done
	for _, r := range c.Why("mill") { // newest first
		fmt.Println(r.Attempt, r.Outcome, r.Causes[0].Event, r.Err)
	}
	stop()
	// Output:
	// 2 success retry <nil>
	// 1 error request no water
}

// TerminalError marks an error that no retry can fix.
func ExampleTerminalError() {
	err := fmt.Errorf("reconcile mill: %w", controller.TerminalError(errors.New("spec.wheels must be positive")))
	fmt.Println(err)
	fmt.Println(errors.Is(err, controller.ErrTerminal))
	// Output:
	// reconcile mill: terminal error: spec.wheels must be positive
	// true
}

// A source of one's own adds keys until its context ends. Here a source is removed when it is no longer needed.
func ExampleSourceFunc() {
	reconciled := make(chan string)
	c := controller.New("jobs", controller.Func[string](func(_ context.Context, key string) (controller.Result, error) {
		reconciled <- key
		return controller.Result{}, nil
	}), controller.Options{})
	source := c.Watch(controller.SourceFunc("tickets", func(ctx context.Context, sink *controller.Sink[string]) error {
		sink.Add("ticket 7", workqueue.Item{Cause: workqueue.Cause{Source: "tickets", Event: "open"}})
		<-ctx.Done()
		return nil
	}))
	stop := runAll(c.Run)
	fmt.Println(<-reconciled)
	source.Remove()
	<-source.Done()
	fmt.Println(source.Err())
	stop()
	// Output:
	// ticket 7
	// <nil>
}

// A reconcile knows which attempt it is, and logs with the fields of the controller and of the key.
func ExampleAttempt() {
	done := make(chan struct{})
	c := controller.New("mills", controller.Func[string](func(ctx context.Context, _ string) (controller.Result, error) {
		controller.Logger(ctx).Info("turning") // Options.Logger says where to
		fmt.Println("attempt", controller.Attempt(ctx))
		if controller.Attempt(ctx) < 3 {
			return controller.Result{}, errors.New("no water")
		}
		close(done)
		return controller.Result{}, nil
	}), controller.Options{})
	stop := runAll(c.Run)
	c.Add("mill", workqueue.Item{})
	<-done
	stop()
	// Output:
	// attempt 1
	// attempt 2
	// attempt 3
}
