// Package program makes and owns what the parts of a program share: the client, the logger, the metrics, the informers
// and the manager. Each type then takes one line, and each controller another.
//
// # Example
//
//	p, err := program.New(program.Options{Name: "neighbours"})
//	pods := program.Typed[*corev1.Pod](p, Pods, informer.Options[*corev1.Pod]{}) // a cached client and its informer
//	program.Controller(p, "neighbours", reconciler, controller.For(pods.Informer()))
//	err = manager.UntilSignal(ctx, p.Run) // blocks
//
// See Example.
//
// Add takes what has no function of its own. A runnable of your own works only on the leader: it starts when this
// replica leads, and ends before the lease is released. A Placement, or a method NeedLeaderElection that returns false,
// makes it work on every replica; Manager.AddWith takes a Placement.
//
// # Promises
//
//  1. Every part of leat that a function of this package makes, or that Add adds, logs to the program's logger and has
//     metrics at the program's registry, unless it has its own. A manager.Server, a multicluster.Set and a
//     shardedsource.Scopes only log. A runnable of your own gets the logger and the Metrics by methods UseLogger and
//     UseMetrics.
//  2. Two calls for the same collection share one informer.
//  3. The functions that make parts return no error. Err returns all of their errors, and Run does before it starts
//     anything.
//  4. Nothing is global: a process may have several programs.
//
// # Concurrency
//
// New reads files. Run blocks. All other functions may be called on any goroutine, before and during Run, and do not
// block.
//
// # Differences from client-go
//
// controller-runtime's Manager makes clients, caches and recorders too. Here, package manager only runs what it is
// given, and this package may be left out. There is no scheme: the type and the resource are arguments.
package program
