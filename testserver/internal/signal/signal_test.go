package signal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/testserver/internal/signal"
)

func TestFireWakesThoseThatWait(t *testing.T) {
	var s signal.Signal
	first, second := s.Wait(), s.Wait()
	s.Fire()
	<-first
	<-second
	later := s.Wait()
	select {
	case <-later:
		t.Fatal("an earlier Fire must not wake a later Wait")
	default:
	}
	s.Fire()
	<-later
}

func TestFireWithoutWaitersAllocatesNothing(t *testing.T) {
	var s signal.Signal
	require.Zero(t, testing.AllocsPerRun(10, s.Fire))
}
