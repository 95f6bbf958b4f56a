// Package interop tests that leat and client-go understand each other where they meet: replicas of both campaign for one
// lease, on leat's test server and on fake time. It has tests only.
package interop
