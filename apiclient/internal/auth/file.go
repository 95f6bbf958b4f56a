package auth

import (
	"bytes"
	"errors"
	"os"
	"time"

	"github.com/leatproject/leat/internal/regularfile"
)

const (
	// lookInterval is the shortest time between two checks whether a file was replaced.
	lookInterval = 5 * time.Second
	// readInterval is the time after which a file is read again even if it seems unchanged. Two versions look alike if
	// they have the same length and were written within a tick of the file system's clock, or if the file system
	// caches.
	readInterval = time.Minute
)

// FieldError says which field of the client's configuration is invalid, and why.
type FieldError struct {
	Field string // "TLS.CAFile"
	Err   error
}

// Error names the field and the reason.
func (e *FieldError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *FieldError) Unwrap() error { return e.Err }

// file is a file that may be replaced while the program runs, or data that never change.
type file struct {
	field   string // for errors
	path    string // empty for data
	content []byte
	info    os.FileInfo // of the content; nil before the first read
	read    time.Time
}

// newFile returns the content of a pair of fields: the data, or else the file. It returns nil if both are empty.
func newFile(field string, data []byte, path string) (*file, error) {
	switch {
	case len(data) > 0:
		return &file{field: field + "Data", content: data}, nil
	case path == "":
		return nil, nil
	}
	f := &file{field: field + "File", path: path}
	if _, err := f.look(time.Now(), true); err != nil {
		return nil, f.fail(err)
	}
	return f, nil
}

func (f *file) fail(err error) error { return &FieldError{Field: f.field, Err: err} }

// rotates reports whether the content can change.
func (f *file) rotates() bool { return f != nil && f.path != "" }

// look reads the file again if it was replaced, and in any case if must is true. It reports whether the content
// changed. After an error the last content stays. Kubernetes replaces the files of a volume by moving a symbolic link
// above them, so the inode changes. look holds a lock, so it reads only regular files: a FIFO would block.
func (f *file) look(now time.Time, must bool) (changed bool, err error) {
	if !f.rotates() {
		return false, nil
	}
	info, err := os.Stat(f.path)
	if err != nil {
		return false, err
	}
	if f.info != nil && f.isAsRead(info) && !must && now.Sub(f.read) < readInterval {
		return false, nil
	}
	content, err := regularfile.Read(f.path)
	if err != nil {
		return false, err
	}
	if len(content) == 0 {
		return false, errors.New("the file " + f.path + " is empty")
	}
	changed = !bytes.Equal(content, f.content)
	// info is older than content. If the file is replaced in between, the next look reads it again.
	f.content, f.info, f.read = content, info, now
	return changed, nil
}

func (f *file) isAsRead(info os.FileInfo) bool {
	return os.SameFile(info, f.info) && info.ModTime().Equal(f.info.ModTime()) && info.Size() == f.info.Size()
}
