// Package selfsigned makes and renews the serving certificate of a webhook server, and tells the API server to trust
// it. All replicas share the certificate in a Secret. Use it where no cert-manager does this.
//
// Read state.go for the steps of a renewal; it is one pure function. selfsigned.go has the loop around it.
//
// # Example
//
//	certificates, err := selfsigned.New(selfsigned.Options{
//		Client: client, Secret: api.Key{Namespace: "bakery", Name: "webhooks"}, Hosts: []string{"webhooks.bakery.svc"},
//		Mutating: []string{"bakery"}, Validating: []string{"bakery"}, CustomResources: []string{"breads.bakery.example"},
//	})
//	server, err := webhook.New(webhook.Options{Certificates: certificates})
//
// See ExampleNew.
//
// # Promises
//
//  1. At each moment of a renewal, the API server trusts the certificates of all replicas. The next certificate is
//     used when its authority is in every configuration. The former authority is removed after its certificate has
//     expired.
//  2. Replicas that start or renew at the same moment agree on one certificate. An older authority is never written
//     over a newer one.
//  3. What others undo is repaired at the next check: a configuration, a Secret that is deleted or damaged. A Secret
//     with the data of another program is not changed.
//  4. A failure is logged once and repeated, with a growing pause. A configuration that is missing does not hinder the
//     others.
//  5. The key of an authority is not stored. An authority signs one certificate.
//
// # Concurrency
//
// Run blocks and starts no goroutine; webhook.Server calls it. Certificate may be called on any goroutine. Replicas
// need no leader: each write names the resource version that the replica has read, so one replica writes at a time. A
// replica reads a configuration before the Secret. A newer authority therefore has a newer configuration, and the older
// write is a conflict.
//
// # Differences from client-go
//
// client-go and controller-runtime have no such package. cert-controller of Open Policy Agent does the same for
// controller-runtime. The program needs these permissions: get, create and patch of the Secret; get and patch of the
// configurations and definitions.
package selfsigned
