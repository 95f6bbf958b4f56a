package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStepper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		s := newStepper(ended)
		passed := make(chan string, 9)
		pass := func(stages ...string) {
			for _, stage := range stages {
				go func() {
					s.wait(stage)
					passed <- stage
				}()
			}
			synctest.Wait()
		}
		(*stepper)(nil).wait("nothing")
		pass("a")
		require.Equal(t, "a", <-passed, "stages run")
		require.Equal(t, "no stage waits", s.next())
		s.pause()
		s.pause()
		pass("b")
		require.Empty(t, passed)
		require.Equal(t, "one of these went on: b", s.next())
		require.Equal(t, "b", <-passed)
		pass("c", "d")
		s.resume(time.Minute)
		synctest.Wait()
		require.Len(t, passed, 2)
		<-passed
		<-passed
		began := time.Now()
		pass("e")
		require.Equal(t, "e", <-passed)
		require.Equal(t, time.Minute, time.Since(began))
		s.pause()
		pass("f")
		close(ended)
		require.Equal(t, "f", <-passed)
	})
}
