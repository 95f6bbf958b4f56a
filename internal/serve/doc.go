// Package serve runs a test server as a process: its flags, its kubeconfig, faults, the state in a file, and an admin
// endpoint on loopback, which creates more clusters. cmd/leat serves testserver with it, and
// testserver/cluster/cmd/leat-server serves a typed cluster.
//
// # Example
//
//	var o serve.Options
//	o.Flags(flag.CommandLine)
//	flag.Parse()
//	err := o.Run(ctx, os.Stdout, serve.Hooks{New: newServer})
//
// # Promises
//
//  1. The admin endpoint answers programs on this machine only. Web pages of other origins and other addresses get 403.
//  2. Wrong flags, plans and states give one error before the server listens.
//  3. The file of the state is replaced at once or not at all.
//  4. Clusters are created, forked and deleted while the server runs. A request to one does not wait for another one.
//
// # Concurrency
//
// Run blocks until its context ends, and ends everything that it started.
package serve
