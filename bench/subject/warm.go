package subject

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/leatproject/leat/bench/measure"
)

// warm measures a first list from the server, and one from the file of an earlier informer. An informer between the two
// writes the file, and is not measured.
func (w *worker) warm(ctx context.Context) error {
	if w.library.Kept == nil {
		return ErrUnsupported
	}
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		return err
	}
	file := filepath.Join(folder, "file")
	return errors.Join(w.lists(ctx, file), os.RemoveAll(folder))
}

func (w *worker) lists(ctx context.Context, file string) error {
	for _, phase := range []struct{ name, file string }{{"list", ""}, {"", file}, {"warm", file}} {
		var received atomic.Int64
		kept := *w
		kept.library.Informer = func(s Spec, h Hooks) (Informer, error) { return w.library.Kept(s, h, phase.file, &received) }
		f, err := kept.follow(ctx)
		if err != nil {
			return err
		}
		spent := measure.Now().Since(f.before)
		if phase.name != "" {
			w.set(phase.name+" ms", float64(spent.Wall.Milliseconds()))
			w.set(phase.name+" cpu ms", float64(spent.CPU.Milliseconds()))
			w.set(phase.name+" KB", float64(received.Load())/1e3)
		}
		if err := f.stop(); err != nil {
			return err
		}
	}
	size, err := os.Stat(file)
	if err != nil {
		return err
	}
	w.set("file MB", float64(size.Size())/1e6)
	return nil
}
