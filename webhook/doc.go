// Package webhook serves the admission and conversion webhooks of a program: an HTTPS server whose defaulters,
// validators and conversions are functions of Go types. docs/webhooks.md shows a whole program.
//
// Read server.go for the API, handler.go for the way of a request, admission.go, conversion.go, and patch.go for the
// JSON patch of a typed object.
//
// # Example
//
//	server, err := webhook.New(webhook.Options{CertFile: "tls.crt", KeyFile: "tls.key", Logger: log, Observer: metrics})
//	server.Handle("/mutate-job", webhook.Admission[*v1.Job]{Resource: v1.Jobs, Default: defaults{}})
//	server.Handle("/validate-job", webhook.Admission[*v1.Job]{Resource: v1.Jobs, Validate: rules{}})
//	server.Handle("/convert", webhook.Conversion[*v1.Job]{
//		Hub: v1.Jobs, Spokes: []webhook.Spoke[*v1.Job]{webhook.NewSpoke("v1alpha1", toV1, toV1alpha1)},
//	})
//	err = manager.Add(server) // it runs in the first group
//
// See ExampleServer_Handle and ExampleNewSpoke.
//
// # Promises
//
//  1. A patch makes the changes of the defaulter and no others. Fields that the type does not declare stay.
//  2. Errors about fields, and errors with a Status, arrive at the user as such. Warnings arrive with every answer.
//  3. A request that has no valid review gets a Status that says what to correct, and one log line: an unknown version,
//     path, kind or operation, a wrong content type, a body that is too large.
//  4. A panic of a webhook gets 500, is logged with its stack and is counted. The server continues.
//  5. A webhook has the time that the API server grants, less a margin for sending the answer. The number of calls and
//     the memory of the bodies have limits. A peer that sends slowly does not delay others.
//  6. A conversion changes no metadata except labels and annotations, and converts all objects of a review or none.
//  7. New connections get the certificate of the newest files. Files that are incomplete or do not fit together leave
//     the former certificate in use.
//  8. When Run returns, no webhook is being called. Requests in flight have a bounded time to end.
//
// # Concurrency
//
// Run blocks, and starts a goroutine for the certificate and those of net/http. Each request has a goroutine, on which
// the defaulter, the validator or the conversion runs; they must be safe for concurrent use. Their objects belong to
// them. Handle may be called at any time. The server holds no lock while it calls user code.
//
// # Differences from client-go
//
// client-go has no webhooks; controller-runtime has. Here, a patch is computed from the changes of a Go value, so a
// type with few fields is enough. A failure of the webhook itself, such as a panic or a timeout, is an HTTP error, so
// failurePolicy decides; there, it refuses the request. Conversions are functions and not methods of the types. Only
// the version v1 of the reviews is supported.
package webhook
