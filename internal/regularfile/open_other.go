//go:build !unix

package regularfile

import "os"

// open opens a file.
func open(path string) (*os.File, error) { return os.Open(path) }
