// Package suites runs the test suites of other projects against the API server of package harness. Their sources stay
// in the module cache: they are compiled there, or edited in a temporary folder, and never copied into this repository.
package suites
