// Package interop tests that leat and client-go can share a lease: replicas of both campaign for it on leat's test
// server, on fake time. The package has only tests.
package interop
