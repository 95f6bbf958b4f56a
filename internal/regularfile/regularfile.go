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
		return nil, inPath("read", path, err)
	}
	return readOpened(path)
}

// readOpened opens and reads a file. It checks the kind again, because another file may have replaced the one that Read
// has looked at.
func readOpened(path string) (content []byte, err error) {
	f, err := open(path)
	if err != nil {
		return nil, inPath("read", path, err)
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
		return nil, inPath("read", path, err)
	}
	return content, nil
}

// Create creates an empty file that only its user can read and write. It removes another file at the path first. A
// process that has that file open keeps it, and does not see the new one.
func Create(path string) (*os.File, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, inPath("create", path, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) // O_EXCL also refuses a symbolic link
	if err != nil {
		return nil, inPath("create", path, err)
	}
	return f, nil
}

// OpenPrivate opens a file that Create has made, for reading and writing. Group members may have access to it, because
// the kubelet gives the files of a volume to the fsGroup of a pod. If there is no such file, errors.Is finds
// fs.ErrNotExist in the error.
func OpenPrivate(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err == nil {
		err = private(info)
	}
	if err != nil {
		return nil, inPath("open", path, err)
	}
	return openPrivateNow(path)
}

// openPrivateNow opens a file without a look at its kind before it is opened. It checks the kind again, because another
// file may have replaced the one that OpenPrivate has looked at.
func openPrivateNow(path string) (*os.File, error) {
	f, err := openNoLink(path)
	if err != nil {
		return nil, inPath("open", path, err)
	}
	info, err := f.Stat()
	if err == nil {
		err = private(info)
	}
	if err != nil {
		_ = f.Close() // the other error says more
		return nil, inPath("open", path, err)
	}
	return f, nil
}

// private refuses everything except regular files of this user that others cannot use.
func private(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("it is %s, not a regular file", kindOf(info.Mode()))
	}
	return checkAccess(info)
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
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
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
func inPath(op, path string, err error) error {
	var named *fs.PathError
	if errors.As(err, &named) {
		err = named.Err
	}
	return &fs.PathError{Op: op, Path: quote.Short(path, maxPath), Err: err}
}
