package manager_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/manager"
)

// actAs is an environment variable. It makes the test binary a program that runs until a signal.
const actAs = "LEAT_MANAGER_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if how := os.Getenv(actAs); how != "" {
		os.Exit(signalled(how))
	}
	os.Exit(m.Run())
}

// signalled waits for signals. The stubborn one does not end with the first.
func signalled(how string) int {
	err := manager.UntilSignal(context.Background(), func(ctx context.Context) error {
		fmt.Println("ready")
		<-ctx.Done()
		fmt.Println("told")
		if how == "stubborn" {
			<-time.After(time.Hour)
		}
		return errors.New("as it was told")
	})
	fmt.Println(err)
	return 3
}

func TestSignals(t *testing.T) {
	for _, c := range []struct {
		how  string
		send []syscall.Signal
		code int
	}{
		{"obedient", []syscall.Signal{syscall.SIGTERM}, 3},
		{"obedient", []syscall.Signal{syscall.SIGINT}, 3},
		{"stubborn", []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}, 1},
	} {
		t.Run(fmt.Sprint(c.how, c.send), func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), actAs+"="+c.how)
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			lines := bufio.NewScanner(out)
			for i, want := range []string{"ready", "told"} {
				require.True(t, lines.Scan())
				require.Equal(t, want, lines.Text())
				if i < len(c.send) {
					require.NoError(t, cmd.Process.Signal(c.send[i]))
				}
			}
			if c.how == "obedient" {
				require.True(t, lines.Scan())
				require.Equal(t, "as it was told", lines.Text())
			}
			var exit *exec.ExitError
			require.ErrorAs(t, cmd.Wait(), &exit)
			require.Equal(t, c.code, exit.ExitCode())
		})
	}
}

// TestUntilSignalLetsGo ends without a signal.
func TestUntilSignalLetsGo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, manager.UntilSignal(ctx, func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	}))
	var during context.Context
	require.Panics(t, func() {
		_ = manager.UntilSignal(t.Context(), func(ctx context.Context) error {
			during = ctx
			panic("ouch")
		})
	})
	require.Error(t, during.Err())
}
