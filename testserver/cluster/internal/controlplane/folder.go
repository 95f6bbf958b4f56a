package controlplane

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/leatproject/leat/testserver/cluster/internal/controlplane/front"
)

// Folder makes a folder with the programs of a control plane, and returns its path. Programs that run do not change,
// because a file is replaced as a whole. An empty name means a folder in the cache of the user.
func Folder(name string) (string, error) {
	if name == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("the default folder: %w; name another one: leat-server assets DIR", err)
		}
		name = filepath.Join(cache, "leat-server", "assets")
	}
	name, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(name, 0o755); err != nil {
		return "", err
	}
	for _, program := range front.Programs {
		source, link := self, os.Link
		if program == "kubectl" {
			if found := findKubectl(name, self); found != "" {
				source, link = found, os.Symlink // it may be updated
			}
		}
		if err := place(source, filepath.Join(name, program+suffix()), link); err != nil {
			return "", fmt.Errorf("%s: %w", program, err)
		}
	}
	return name, nil
}

func suffix() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}

// findKubectl returns the first kubectl of the path that is not leat-server, or an empty string.
func findKubectl(folder, self string) string {
	mine, err := os.Stat(self)
	if err != nil {
		return ""
	}
	for _, in := range filepath.SplitList(os.Getenv("PATH")) {
		if !filepath.IsAbs(in) {
			continue // LookPath would search the whole path
		}
		found, err := exec.LookPath(filepath.Join(in, "kubectl"))
		if err != nil {
			continue
		}
		real, err := filepath.EvalSymlinks(found)
		if err != nil || filepath.Dir(real) == folder {
			continue
		}
		if info, err := os.Stat(real); err == nil && !os.SameFile(info, mine) && !sameFolder(in, folder) {
			return found
		}
	}
	return ""
}

func sameFolder(a, b string) bool {
	x, err := os.Stat(a)
	y, failed := os.Stat(b)
	return err == nil && failed == nil && os.SameFile(x, y)
}

// place makes target the same program as source. leat-server is a hard link, because a symbolic link breaks when
// `go run` removes its binary, and because Windows permits symbolic links to few users. Where no link is possible, such
// as on another device, target is a copy.
func place(source, target string, link func(source, target string) error) error {
	from, err := os.Stat(source)
	if err != nil {
		return err
	}
	// A copy has the time of its source.
	if have, err := os.Lstat(target); err == nil && (os.SameFile(from, have) ||
		have.Mode().IsRegular() && have.Size() == from.Size() && have.ModTime().Equal(from.ModTime())) {
		return nil
	}
	part, err := os.MkdirTemp(filepath.Dir(target), ".part")
	if err != nil {
		return err
	}
	next := filepath.Join(part, filepath.Base(target))
	if err = link(source, next); err != nil {
		err = copyFile(source, next, from)
	}
	if err == nil {
		err = os.Rename(next, target)
	}
	return errors.Join(err, os.RemoveAll(part))
}

func copyFile(source, target string, info os.FileInfo) error {
	from, err := os.Open(source)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close(), os.Chtimes(target, info.ModTime(), info.ModTime()))
}
