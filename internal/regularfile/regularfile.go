package regularfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/leatproject/leat/internal/quote"
)

// MaxBytes is the largest size of a file. It has room for a kubeconfig of 800 clusters with certificates, and for ten
// times the largest bundles of authorities.
const MaxBytes = 4 << 20

// maxPath limits the path in an error, in bytes. A kubeconfig may name a longer one.
const maxPath = 512

var errTooLarge = fmt.Errorf("it is larger than %d MiB", MaxBytes>>20)

// Read returns the content of a regular file. If there is no such file, errors.Is finds fs.ErrNotExist in the error.
func Read(path string) ([]byte, error) {
	info, err := os.Stat(path) // an open of a device may have effects, so the kind is checked before
	if err == nil {
		err = check(info)
	}
	if err != nil {
		return nil, inPath(path, err)
	}
	return readOpened(path)
}

// readOpened opens and reads a file. It checks the kind again, because another file may have replaced the one that Read
// has looked at.
func readOpened(path string) (content []byte, err error) {
	f, err := open(path)
	if err != nil {
		return nil, inPath(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = check(info)
	}
	if err == nil {
		content, err = readAll(f)
	}
	if err != nil {
		return nil, inPath(path, err)
	}
	return content, nil
}

// check refuses everything except regular files of at most MaxBytes.
func check(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("it is %s, not a regular file%s", kindOf(info.Mode()), hint(info.Mode()))
	}
	if info.Size() > MaxBytes {
		return errTooLarge
	}
	return nil
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe (FIFO)"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeCharDevice != 0:
		return "a character device"
	case mode&fs.ModeDevice != 0:
		return "a block device"
	}
	return "of the type " + mode.Type().String()
}

// hint tells what to do about a pipe or a terminal. A shell makes one of <(command), of | and of /dev/stdin.
func hint(mode fs.FileMode) string {
	if mode&(fs.ModeNamedPipe|fs.ModeCharDevice|fs.ModeSocket) != 0 {
		return "; write the content to a file, and name that file"
	}
	return ""
}

// readAll reads at most MaxBytes. The size in the file's status is not enough: the file may grow, and the files of
// /proc have size 0.
func readAll(r io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(content) > MaxBytes:
		return nil, errTooLarge
	}
	return content, nil
}

// inPath returns an error that names the path once.
func inPath(path string, err error) error {
	var named *fs.PathError
	if errors.As(err, &named) {
		err = named.Err
	}
	return &fs.PathError{Op: "read", Path: quote.Short(path, maxPath), Err: err}
}
