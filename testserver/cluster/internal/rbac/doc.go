// Package rbac decides by the roles and bindings of a server what a user may do.
//
//	policy := rbac.New(factory)
//	decision, reason, err := policy.Authorize(ctx, attributes)
//
// # Promises
//
//  1. A role or a binding counts from the moment when the write was answered.
//  2. A user cannot get more rights by writing a role or a binding, except with the verbs escalate and bind.
//  3. A ClusterRole with an aggregation rule has the rules of the roles that it selects.
//
// # Concurrency
//
// All methods may be called from any goroutine that does not hold the lock of the store.
package rbac
