package apiclient

import (
	"bytes"
	"errors"
	"io"
	"os"
	"time"
)

const (
	// lookInterval is how often, at most, requests look whether a file was replaced.
	lookInterval = 5 * time.Second
	// readInterval is after what time a file is read even if it seems to be the same: two versions of one length that
	// were written within a tick of the file system's clock, or a file system that caches, look alike.
	readInterval = time.Minute
	// maxFile bounds what is read of a file that is not what it should be. The largest bundles of authorities have a
	// tenth of it.
	maxFile = 4 << 20
)

// file is a file that somebody replaces now and then, or data that stand for one that nobody does.
type file struct {
	field   string // of Config, for errors
	path    string // empty for data
	content []byte
	info    os.FileInfo // of what was read; nil before
	read    time.Time
}

// newFile reads what a pair of fields says: the data, else the file. It returns nil where both are empty.
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

// rotates tells whether there is something to look at.
func (f *file) rotates() bool { return f != nil && f.path != "" }

// look reads the file again if it was replaced, and in any case when it must, and tells whether it has another content.
// After an error the last content stays. Kubernetes replaces the files of a volume by moving a symbolic link above them,
// which shows as another inode.
func (f *file) look(now time.Time, must bool) (changed bool, err error) {
	if !f.rotates() {
		return false, nil
	}
	info, err := os.Stat(f.path)
	if err != nil {
		return false, err
	}
	if f.info != nil && (f.isAsRead(info) && !must && now.Sub(f.read) < readInterval || !info.Mode().IsRegular()) {
		return false, nil // a pipe is read once: nobody might be there to write again
	}
	content, err := readFile(f.path)
	if err != nil {
		return false, err
	}
	changed = !bytes.Equal(content, f.content)
	// The look came before the reading: what was replaced in between is read once more, and never missed.
	f.content, f.info, f.read = content, info, now
	return changed, nil
}

func (f *file) isAsRead(info os.FileInfo) bool {
	return os.SameFile(info, f.info) && info.ModTime().Equal(f.info.ModTime()) && info.Size() == f.info.Size()
}

func readFile(path string) ([]byte, error) {
	r, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	content, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(content) == 0:
		return nil, errors.New("the file " + path + " is empty")
	case len(content) > maxFile:
		return nil, errors.New("the file " + path + " is larger than 4 MiB")
	}
	return content, nil
}
