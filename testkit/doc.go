// Package testkit runs a controller in a test: the real program, against an API server in memory, on fake time.
//
// # Example
//
// See Example. docs/testing.md explains more of them.
//
//	testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) {
//		k.Start(func(ctx context.Context) error { return run(ctx, k.Client) })
//		testkit.Create(k, pods, pod)
//		require.Equal(t, corev1.PodRunning, testkit.Get[*corev1.Pod](k, pods, key).Status.Phase)
//	})
//
// A test takes milliseconds, however much fake time passes. Only the order of goroutines that are ready at the same
// moment differs between two runs.
//
// # What a test can do
//
//	k.Idle()                                  // wait until every goroutine waits for something
//	k.Pass(time.Hour)                         // let time pass
//	k.NextRequest(time.Hour)                  // let time pass until the program sends a request
//	k.LoseEvents(func() { … })                // change objects without watch events
//	k.Fail("update", "pods/status", 1, 409)   // make the next status update a conflict
//	k.Restart(time.Minute)                    // take the server away for a minute
//	k.Server.Inject(faults.Fault{…})          // any other fault
//	program.Stop(); k.Start(…)                // restart the program
//
// [GuardMasks] runs a test with masks and without, to find fields that a program reads although its masks leave them
// out.
//
// # Promises
//
//  1. A test ends only after the program and the server have ended. A goroutine that remains fails the test.
//  2. A program that ends before the test, or with an error, fails the test, unless the test calls Wait.
//  3. A fault of Fail that did not happen fails the test.
//  4. No watch shows what happens inside LoseEvents: the program must find it with a list.
//
// # Concurrency
//
// The test's goroutine calls the methods of a Kit and of a Program. The goroutines of the program may use Client and
// Logger.
package testkit
