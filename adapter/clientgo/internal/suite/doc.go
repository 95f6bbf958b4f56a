// Package suite runs the tests of client-go on leat. It copies them at run time: from the module cache into an overlay
// of the go command, with other constructors. The repository contains none of their code.
package suite
