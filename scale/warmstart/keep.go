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
func (w *ListerWatcher[T]) begin(o api.Options[T]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	w.next.discard()
	w.next, w.paged = nil, ""
	if w.boot == "" {
		w.status.Stopped = errNoBootID
		return
	}
	next, err := createLog(w.o.Path+".new", w.seal)
	if err == nil {
		w.next = next
		err = w.writeBytes(next, w.header(o).encode())
	}
	if err != nil {
		w.giveUp(err)
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
func (w *ListerWatcher[T]) page(meta metav1.ListMeta) {
	w.mu.Lock()
	w.paged = cmp.Or(w.paged, meta.ResourceVersion)
	version := w.paged
	w.mu.Unlock()
	if meta.Continue == "" {
		w.complete(version)
	}
}

// cancel forgets the list in progress. The file before it stays, because the informer keeps the state before it too.
func (w *ListerWatcher[T]) cancel() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next.discard()
	w.next = nil
}

// complete makes the list in progress the file.
func (w *ListerWatcher[T]) complete(version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next == nil {
		return
	}
	if w.newest != "" {
		if order, ok := api.CompareVersions(version, w.newest); !ok || order < 0 {
			// The informer may refuse this list, so it must not become the file. It may also accept it.
			w.giveUp(fmt.Errorf("version %s follows %s", version, w.newest))
			w.newest = version
			return
		}
	}
	err := w.write(w.next, record{kind: whole, version: version})
	if err == nil {
		w.next.whole = w.next.size
		err = w.replace(w.next)
	}
	if err != nil {
		w.giveUp(err)
		return
	}
	w.next, w.newest = nil, version
	w.status.Stopped = nil
}

// replace makes a complete file the one that is kept.
func (w *ListerWatcher[T]) replace(f *logFile) error {
	if err := f.moveTo(w.o.Path); err != nil {
		return err
	}
	_ = w.file.close() // its name is gone, and with it its content
	w.file = f
	return nil
}

// compact rewrites the file without states that others have replaced.
func (w *ListerWatcher[T]) compact() error {
	f, err := compacted(w.file, w.o.Path+".new", func(n int64) error { return w.budget.take(time.Now(), n) })
	if err != nil {
		return err
	}
	return w.replace(f)
}

func (w *ListerWatcher[T]) put(f *logFile, object T, version string) error {
	data, err := w.encode(object)
	if err != nil {
		return err
	}
	return w.write(f, record{kind: put, version: version, key: api.KeyOf(object), data: data})
}

func (w *ListerWatcher[T]) write(f *logFile, r record) error {
	if f == w.file || r.kind == whole { // the versions of the objects of a list have no order
		if err := f.reach(r.version); err != nil {
			return err
		}
	}
	return w.writeBytes(f, r.encode())
}

func (w *ListerWatcher[T]) writeBytes(f *logFile, payload []byte) error {
	if err := w.budget.take(time.Now(), int64(len(payload))); err != nil {
		return err
	}
	return f.append(payload)
}

// giveUp ends the use of both files until the next list. The one at Path must not be used by a later process, because
// it will be older than what the informer shows.
func (w *ListerWatcher[T]) giveUp(err error) {
	w.log.Warn("warm start: the file is given up until the next list", zap.NamedError("err", err))
	w.status.Stopped = err
	w.next.discard()
	if err = os.Remove(w.o.Path); errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err != nil && w.file != nil {
		err = w.file.invalidate()
	}
	if err != nil {
		w.log.Error("warm start: remove the file by hand; it is older than what this process shows", zap.NamedError("err", err))
	}
	_ = w.file.close() // nothing in it matters any more
	w.file, w.next = nil, nil
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
