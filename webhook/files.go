package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/internal/regularfile"
)

const (
	// lookInterval is the shortest time between two checks whether the files have changed.
	lookInterval = 5 * time.Second
	// readInterval is the time after which files are read again even if they seem unchanged. Two versions look alike if
	// they have the same length and were written within a tick of the file system's clock.
	readInterval = time.Minute
)

// files is a CertificateSource of two files that may be replaced at any time. New connections look at them, so a server
// without connections does no work. A certificate that cannot be used leaves the former one in use: the files are often
// replaced one after the other.
type files struct {
	cert, key string
	out       *output

	mu       sync.Mutex // guards the fields below
	looked   time.Time
	read     time.Time
	infos    [2]os.FileInfo // of cert and key, when they were read
	contents [2][]byte
	newest   *tls.Certificate
	failed   string // the last error, so that it is logged once
}

// Run waits for the end of ctx. Certificate does the work.
func (f *files) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Certificate returns the newest certificate. It fails only if there was never a valid one.
func (f *files) Certificate(context.Context) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if f.newest != nil && now.Sub(f.looked) < lookInterval {
		return f.newest, nil
	}
	f.looked = now
	if f.newest != nil && !f.changed(now) {
		return f.newest, nil
	}
	err := f.load(now)
	if err != nil && f.newest == nil {
		return nil, err
	}
	if err != nil && err.Error() != f.failed {
		f.out.log().Warn("the new certificate cannot be used; the former one stays", zap.NamedError("err", err))
	}
	if f.failed = ""; err != nil {
		f.failed = err.Error()
	}
	return f.newest, nil
}

// changed reports whether the files seem to differ from those that were read, or were read long ago.
func (f *files) changed(now time.Time) bool {
	if now.Sub(f.read) >= readInterval || f.failed != "" {
		return true
	}
	for i, path := range []string{f.cert, f.key} {
		info, err := os.Stat(path)
		if err != nil || f.infos[i] == nil || !os.SameFile(info, f.infos[i]) || info.Size() != f.infos[i].Size() || !info.ModTime().Equal(f.infos[i].ModTime()) {
			return true
		}
	}
	return false
}

// load reads both files.
func (f *files) load(now time.Time) error {
	err := f.replace(now)
	f.out.counts().CertificateRead(err)
	return err
}

func (f *files) replace(now time.Time) error {
	var infos [2]os.FileInfo
	var contents [2][]byte
	for i, path := range []string{f.cert, f.key} {
		infos[i], _ = os.Stat(path) // older than the content, so a replacement in between is read again
		content, err := regularfile.Read(path)
		if err != nil {
			return err
		}
		contents[i] = content
	}
	f.read, f.infos = now, infos
	if f.newest != nil && bytes.Equal(contents[0], f.contents[0]) && bytes.Equal(contents[1], f.contents[1]) {
		return nil
	}
	pair, err := tls.X509KeyPair(contents[0], contents[1])
	if err != nil {
		return fmt.Errorf("%s with %s: %w", f.cert, f.key, err)
	}
	f.newest, f.contents = &pair, contents
	fields := []zap.Field{zap.Stringer("subject", pair.Leaf.Subject), zap.Time("expires", pair.Leaf.NotAfter)}
	if now.After(pair.Leaf.NotAfter) {
		f.out.log().Warn("the certificate has expired; API servers will refuse it", fields...)
		return nil
	}
	f.out.log().Info("new certificate", fields...)
	return nil
}
