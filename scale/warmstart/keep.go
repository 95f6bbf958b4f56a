package warmstart

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
)

// begin starts another file for a list from the server.
func (k *keeper) begin(h header) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return
	}
	k.next.discard()
	k.next, k.paged = nil, ""
	if k.boot == "" {
		k.status.Stopped = errNoBootID
		return
	}
	next, err := createLog(k.o.Path+".new", k.seal)
	if err == nil {
		k.next = next
		err = k.writeBytes(next, h.encode())
	}
	if err != nil {
		k.giveUp(err)
	}
}

// add writes an object of a list.
func (w *ListerWatcher[T]) add(object T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next == nil {
		return
	}
	if err := w.put(w.next, object, object.GetResourceVersion()); err != nil {
		w.giveUp(err)
	}
}

// page ends a page. A list has the version of its first page: if later pages are newer, the watch repeats the changes
// in between.
func (k *keeper) page(meta metav1.ListMeta) {
	k.mu.Lock()
	k.paged = cmp.Or(k.paged, meta.ResourceVersion)
	version := k.paged
	k.mu.Unlock()
	if meta.Continue == "" {
		k.complete(version)
	}
}

// cancel forgets the list in progress. The file before it stays, because the informer keeps the state before it too.
func (k *keeper) cancel() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.next.discard()
	k.next = nil
}

// complete makes the list in progress the file.
func (k *keeper) complete(version string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.next == nil {
		return
	}
	if k.newest != "" {
		if order, ok := api.CompareVersions(version, k.newest); !ok || order < 0 {
			// The informer may refuse this list, so it must not become the file. It may also accept it: see accepted.
			k.giveUp(fmt.Errorf("version %s follows %s", version, k.newest))
			return
		}
	}
	err := k.write(k.next, record{kind: whole, version: version})
	if err == nil {
		k.next.whole = k.next.size
		err = k.replace(k.next)
	}
	if err != nil {
		k.giveUp(err)
		return
	}
	k.next, k.newest = nil, version
	k.status.Stopped = nil
}

// accepted notes that the informer watches from a version, so it has accepted a list of this version. After an older
// list, as of a restored server, the lists that follow can become the file again.
func (k *keeper) accepted(version string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if order, ok := api.CompareVersions(version, k.newest); k.newest != "" && (!ok || order < 0) {
		k.newest = version
	}
}

// replace makes a complete file the one that is kept.
func (k *keeper) replace(f *logFile) error {
	if err := f.moveTo(k.o.Path); err != nil {
		return err
	}
	_ = k.file.close() // its name is gone, and with it its content
	k.file = f
	return nil
}

// compact rewrites the file without states that others have replaced.
func (k *keeper) compact() error {
	f, err := compacted(k.file, k.o.Path+".new", func(n int64) error { return k.budget.take(time.Now(), n) })
	if err != nil {
		return err
	}
	return k.replace(f)
}

func (w *ListerWatcher[T]) put(f *logFile, object T, version string) error {
	data, err := w.encode(object)
	if err != nil {
		return err
	}
	return w.write(f, record{kind: put, version: version, key: api.KeyOf(object), data: data})
}

func (k *keeper) write(f *logFile, r record) error {
	if f == k.file || r.kind == whole { // the versions of the objects of a list have no order
		if err := f.reach(r.version); err != nil {
			return err
		}
	}
	return k.writeBytes(f, r.encode())
}

func (k *keeper) writeBytes(f *logFile, payload []byte) error {
	if err := k.budget.take(time.Now(), int64(len(payload))); err != nil {
		return err
	}
	return f.append(payload)
}

// giveUp ends the use of both files until the next list. The one at Path must not be used by a later process, because
// it will be older than what the informer shows.
func (k *keeper) giveUp(err error) {
	k.log.Warn("warm start: the file is given up until the next list", zap.NamedError("err", err))
	k.status.Stopped = err
	k.next.discard()
	if err = os.Remove(k.o.Path); errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err != nil && k.file != nil {
		err = k.file.invalidate()
	}
	if err != nil {
		k.log.Error("warm start: remove the file by hand; it is older than what this process shows", zap.NamedError("err", err))
	}
	_ = k.file.close() // nothing in it matters any more
	k.file, k.next = nil, nil
}

// budget is a token bucket of bytes.
type budget struct {
	perMinute int64
	left      float64
	at        time.Time // when left was computed
}

// take spends n bytes, or fails.
func (b *budget) take(now time.Time, n int64) error {
	if b.at.IsZero() {
		b.left = float64(b.perMinute)
	} else {
		b.left = min(float64(b.perMinute), b.left+now.Sub(b.at).Minutes()*float64(b.perMinute))
	}
	b.at = now
	if b.left < float64(n) {
		return fmt.Errorf("more than %d bytes a minute", b.perMinute)
	}
	b.left -= float64(n)
	return nil
}
