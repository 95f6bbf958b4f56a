// Package controllerruntime tests an API server with the client, the cache and the manager of controller-runtime.
package controllerruntime
