// Package disturb applies faults: it keeps the plan of active faults, finds those that affect a request or a frame, and
// delays, fails, stalls, cuts or changes the answer. Faults that need the state of the server are applied by the
// server.
//
//	w = plan.Disturb(w, target) // nil if a fault has answered
//	if _, i := disturb.OfFrame[faults.Drop](plan, target, frame); i != nil {
//		i.CountSeen()
//	}
//
// # Promises
//
//  1. A removed injection affects nothing more, and what it held back continues.
//  2. A match counts once, and only for the first active fault that has the effect.
//
// # Concurrency
//
// All methods may be called on any goroutine. Disturb and the writer that it returns block while a fault delays or
// stalls the answer, until the fault is removed or the client disconnects. The package starts no goroutine.
package disturb
