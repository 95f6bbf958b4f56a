// Package testkit runs a controller in a test: the real program, against an API server in memory, on fake time.
//
// # Example
//
// See Example, and docs/testing.md for a page of them.
//
//	testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) {
//		k.Start(func(ctx context.Context) error { return run(ctx, k.Client) })
//		testkit.Create(k, pods, pod)
//		require.Equal(t, corev1.PodRunning, testkit.Get[*corev1.Pod](k, pods, key).Status.Phase)
//	})
//
// A test takes milliseconds, however much fake time passes. It is the same in each run, except for the order of
// goroutines that are ready at the same moment.
//
// # What a test can do
//
//	k.Idle()                                  // until every goroutine waits for something
//	k.Pass(time.Hour)                         // let time pass
//	k.NextRequest(time.Hour)                  // until the program sends a request
//	k.LoseEvents(func() { … })                // no watch shows what happens inside
//	k.Fail("update", "pods/status", 1, 409)   // the next status update is a conflict
//	k.Restart(time.Minute)                    // the server is away for a minute
//	k.Server.Inject(testserver.Fault{…})      // every other fault that testserver knows
//	program.Stop(); k.Start(…)                // the program is restarted
//
// # Promises
//
//  1. A test ends only when the program and the server have ended; a goroutine that is left fails the test.
//  2. A program that ends with an error, or before the test does, fails the test.
//  3. A fault that a test asked for, and that did not happen, fails the test.
//  4. After LoseEvents no watch has shown what happened inside: the program has to find it in a list.
//
// # Concurrency
//
// The methods of a Kit belong to the goroutine of the test. Logger is for the goroutines of the program.
package testkit
