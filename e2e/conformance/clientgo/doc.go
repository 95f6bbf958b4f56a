// Package clientgo tests an API server with the clients of client-go and their defaults.
package clientgo
