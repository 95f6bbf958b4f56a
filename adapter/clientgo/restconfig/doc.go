// Package restconfig makes clients of leat from the rest.Config of client-go, so that a program that has one needs no
// second configuration. The requests go through the transport that client-go makes for the same rest.Config: its
// credentials, exec plugins, certificates, proxies and wrappers apply, and both libraries share their connections.
//
// # Example
//
//	config := ctrl.GetConfigOrDie() // or clientcmd, or rest.InClusterConfig
//	client, err := restconfig.NewClient(config)
//	pods := informer.New(apiclient.NewTyped[*corev1.Pod](client, podsResource, ""), informer.Options[*corev1.Pod]{})
//
// See Example.
//
// # Promises
//
//  1. Requests have the credentials, the impersonation, the user agent and the wrappers of the rest.Config.
//  2. QPS, Burst and RateLimiter limit the same requests as in client-go: all except watches.
//  3. A field that has no equivalent is refused with an error that names it.
//
// # Concurrency
//
// Both functions may be called on any goroutine. They send no request and start no goroutine; client-go starts one for
// each client certificate that comes from a file or a plugin.
//
// # Differences from client-go
//
// Timeout bounds the wait for the head of the answer to a read, because a bound for the whole request would cut watches
// and large lists. A warning is passed on once for each text. rest.SetDefaultWarningHandler has no effect, because
// client-go does not tell which handler it has got: set WarningHandler of the rest.Config. leat requests protobuf for
// types that have it, unless ContentType or AcceptContentTypes asks for JSON. client-go authenticates the requests, so
// leat does not know the credentials: it cannot remove a token from an error in which the server repeats it.
package restconfig
