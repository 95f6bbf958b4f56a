// Package cache is the place where the suite of controller-runtime's cache is compiled with leat's cache instead. The
// files of the suite are in an overlay.
package cache
