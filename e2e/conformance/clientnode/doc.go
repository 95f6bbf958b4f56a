// Package clientnode tests @kubernetes/client-node, the client for JavaScript. It has only tests.
package clientnode
