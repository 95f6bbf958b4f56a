// Package hooks has the webhooks of TrainingJobs: their defaults, their validation, and the conversion between v1 and
// v1alpha1.
//
// # Example
//
//	server, err := webhook.New(webhook.Options{CertFile: "tls.crt", KeyFile: "tls.key"})
//	hooks.Add(server, hooks.Rules{}, hooks.Rules{})
//	program.Add(server)
//
// # Promises
//
//  1. The webhooks accept a job only if job.Validate does.
//  2. An old client that reads, changes and writes a job in v1alpha1 loses no field of v1.
//
// # Concurrency
//
// All functions may be called on any goroutine, and none blocks.
package hooks
