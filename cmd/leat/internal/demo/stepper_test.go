package demo

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/observe/livepage"
)

func TestStepper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		s := newStepper(ended)
		passed := make(chan string, 9)
		pass := func(gone <-chan struct{}, works ...string) {
			for _, what := range works {
				go func() {
					s.wait(livepage.StageWorkers, what, gone)
					passed <- what
				}()
				synctest.Wait()
			}
		}
		(*stepper)(nil).wait("", "nothing", nil)
		pass(nil, "a")
		require.Equal(t, "a", <-passed, "work goes on")
		require.Equal(t, "nothing waits", s.next())
		s.pause()
		s.pause()
		pass(nil, "b", "c")
		require.Empty(t, passed)
		require.Len(t, s.waiting(), 2)
		require.Equal(t, livepage.Held{Stage: livepage.StageWorkers, What: "b", Since: time.Now()}, s.waiting()[0])
		require.Equal(t, "b", s.next(), "the one that waits the longest")
		require.Equal(t, "b", <-passed)
		synctest.Wait()
		require.Len(t, s.waiting(), 1)
		pass(nil, "d")
		s.resume(time.Minute)
		synctest.Wait()
		require.Len(t, passed, 2)
		<-passed
		<-passed
		began := time.Now()
		pass(nil, "e")
		require.Equal(t, "e", <-passed)
		require.Equal(t, time.Minute, time.Since(began))
		s.pause()
		gone := make(chan struct{})
		pass(gone, "f")
		close(gone)
		require.Equal(t, "f", <-passed)
		pass(nil, "g")
		close(ended)
		require.Equal(t, "g", <-passed)
	})
}

// TestBatchesGoFirst has handlers that wait for the batch of their change.
func TestBatchesGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var none *batches
		none.pass(time.Now(), "a batch")
		ended := make(chan struct{})
		s := newStepper(ended)
		b := newBatches(s)
		since := time.Now()
		s.pause()
		passed := make(chan string, 9)
		gone := make(chan struct{})
		for name, gone := range map[string]chan struct{}{"handler": nil, "removed": gone} {
			go func() {
				b.await(since, gone)
				passed <- name
			}()
		}
		synctest.Wait()
		close(gone)
		require.Equal(t, "removed", <-passed)
		go b.pass(since, "a batch")
		synctest.Wait()
		require.Empty(t, passed, "the batch waits")
		require.Equal(t, "a batch", s.next())
		require.Equal(t, "handler", <-passed)
		close(ended)
		b.await(since.Add(time.Hour), nil)
	})
}
