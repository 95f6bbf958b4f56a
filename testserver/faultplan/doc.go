// Package faultplan writes faults as text: on a command line, in a file, in the body of a request. A plan has a seed,
// so the same plan affects the same requests again.
//
// # Example
//
//	plan, err := faultplan.ParsePlan([]byte(`
//	seed: 7
//	faults:
//	- "watch pods: drop 10%"
//	- "list,watch pods namespace=shop: fail 503 times=2"
//	- "outage after=30s for=2s every=1m"
//	`))
//	active := faultplan.NewActive(server, plan.Seed)
//	defer active.Close()
//	_, err = active.InjectAll(plan.Faults)
//
// # The text of a fault
//
//	[VERBS] [RESOURCE] [namespace=] [name=] [agent=] [frames=]:
//	    EFFECT [ARGUMENTS] [N%] [skip=] [times=] [after=] [for=] [every=]
//
// Everything before the colon selects what is affected, and may be missing. Verbs and frames are separated by commas.
// Text with spaces stands in double quotes. effects.go has the effects with their arguments; package faults says what
// they do. "N%" is the probability for each match. "after" is the delay of the injection, "for" the time until the
// removal, "every" the time between two injections. A drop, duplicate or malform of the verb list affects items. A
// stale or a restore whose snapshot does not exist yet begins when it is taken, so a plan with one can be loaded.
//
// # Promises
//
//  1. String returns a text that Parse reads as the same fault.
//  2. A text that is not a fault gives one error of a kilobyte at most, which quotes the beginning of the wrong
//     word. So does the singular, the short name or the kind of a resource that the server has. Nothing is injected
//     then.
//  3. Equal plans and equal requests in equal order have equal effects.
//
// # Concurrency
//
// The methods of Active may be called on any goroutine. Faults with after, for or every have a timer each; Close stops
// the timers.
package faultplan
