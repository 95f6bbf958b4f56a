package warmstart

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

// partSize is the number of objects that one goroutine decodes at once. At most two parts for each goroutine are
// decoded and not passed on.
const partSize = 1024

// codecOf returns the codec of a source, or another one if the source does not say.
func codecOf[T api.Object](source api.ListerWatcher[T]) *codec.Codec[T] {
	if own, ok := api.As[codec.Source[T]](source); ok {
		return own.Codec()
	}
	return codec.New[T](codec.Options{})
}

// listFile lists from the file.
func (w *ListerWatcher[T]) listFile(
	ctx context.Context, o api.Options[T], state *replayed, each func(T) error,
) (metav1.ListMeta, error) {
	n := 0
	var refused error
	err := w.decode(ctx, o, state, func(object T) error {
		n++
		refused = each(object)
		return refused
	})
	if err == nil && n != len(state.index) {
		err = fmt.Errorf("%d of %d objects", n, len(state.index))
	}
	if err == nil {
		w.log.Info("warm start", zap.Int("objects", n), zap.String("rv", state.version))
		state.index = nil
		return metav1.ListMeta{ResourceVersion: state.version}, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if refused == nil && ctx.Err() == nil {
		err = fmt.Errorf("warmstart: read %s: %w", w.o.Path, err)
		w.giveUp(err)
	}
	w.status.Warm, w.status.Objects, w.status.Version, w.status.Cold = false, 0, "", err
	return metav1.ListMeta{}, err
}

// decode decodes the objects of the file and passes them on in their order.
func (w *ListerWatcher[T]) decode(ctx context.Context, o api.Options[T], state *replayed, each func(T) error) error {
	parts := slices.Collect(slices.Chunk(state.index, partSize))
	one := func(ctx context.Context, part index, each func(T) error) error {
		_, err := w.codec.DecodeList(ctx, w.list(state, part), w.mediaType, w.source.Collection().Resource, api.Options[T]{ShareParts: o.ShareParts}, each)
		return err
	}
	workers := min(w.workers, len(parts))
	if workers > 1 {
		return decodeParts(ctx, parts, workers, one, each)
	}
	for _, part := range parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := one(ctx, part, each); err != nil {
			return err
		}
	}
	return nil
}

// decodeParts decodes the parts with one on several goroutines.
func decodeParts[T any](
	ctx context.Context, parts []index, workers int, one func(context.Context, index, func(T) error) error, each func(T) error,
) error {
	var active sync.WaitGroup
	defer active.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make([]chan decoded[T], len(parts))
	for i := range results {
		results[i] = make(chan decoded[T], 1)
	}
	ahead := make(chan struct{}, 2*workers) // has an element for each part that was begun and not passed on
	var begun atomic.Int64
	for range workers {
		active.Go(func() {
			for {
				select {
				case ahead <- struct{}{}:
				case <-ctx.Done():
					return
				}
				n := int(begun.Add(1)) - 1
				if n >= len(parts) {
					return
				}
				results[n] <- decodeAll(ctx, parts[n], one)
			}
		})
	}
	for _, result := range results {
		select {
		case d := <-result:
			<-ahead
			if err := pass(ctx, d, each); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// decoded are the objects of a part.
type decoded[T any] struct {
	objects []T
	err     error // that ended the part
}

func decodeAll[T any](ctx context.Context, part index, one func(context.Context, index, func(T) error) error) decoded[T] {
	objects := make([]T, 0, len(part))
	err := one(ctx, part, func(object T) error {
		objects = append(objects, object)
		return nil
	})
	return decoded[T]{objects, err}
}

func pass[T any](ctx context.Context, d decoded[T], each func(T) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, object := range d.objects {
		if err := each(object); err != nil {
			return err
		}
	}
	return d.err
}
