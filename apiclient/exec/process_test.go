//go:build unix

package exec_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/apiclient/exec"
	"github.com/leatproject/leat/internal/fixture/must"
)

func TestTheInputOfAPlugin(t *testing.T) {
	t.Setenv("INHERITED", "from here")
	t.Setenv("EXTRA", "overridden")
	t.Setenv("KUBERNETES_EXEC_INFO", "of somebody else")
	o := options(t, "report", variable("EXTRA", "e"), variable("KUBERNETES_EXEC_INFO", "ours wins"))
	o.Args = []string{"-x", "two words"}
	c := must.Get(newPlugin(t, o).Credentials(t.Context()))(t)
	var seen map[string]any
	require.NoError(t, json.Unmarshal([]byte(c.Token.Reveal()), &seen))
	wd := must.Get(os.Getwd())(t)
	require.Equal(t, map[string]any{
		"args": []any{"-x", "two words"}, "name": self(t), "extra": "e", "inherited": "from here", "stdin": "", "wd": wd,
		"info": map[string]any{
			"kind": "ExecCredential", "apiVersion": exec.V1, "spec": map[string]any{"interactive": false},
		},
	}, seen)
}

func TestInteractivePluginsHaveTheTerminal(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	must.Get(w.WriteString("jane\n"))(t)
	o := options(t, "ask")
	shown := &bytes.Buffer{}
	o.InteractiveMode, o.Terms.Stdin, o.Terms.Stderr = exec.Always, r, shown
	p := newPlugin(t, o)
	p.FakeTerminal(true)
	require.Equal(t, "for jane", must.Get(p.Credentials(t.Context()))(t).Token.Reveal())
	require.Equal(t, "password: ", shown.String())

	said, theirs, err := os.Pipe()
	require.NoError(t, err)
	defer said.Close()
	ours := os.Stderr
	defer func() { os.Stderr = ours }()
	o.Terms.Stderr, os.Stderr = nil, theirs
	must.Get(w.WriteString("joe\n"))(t)
	p = newPlugin(t, o)
	p.FakeTerminal(true)
	must.Get(p.Credentials(t.Context()))(t)
	require.NoError(t, theirs.Close())
	text := must.Get(io.ReadAll(said))(t)
	require.Equal(t, "password: ", string(text), "the program's own standard error")
}

func TestATerminalIsRecognised(t *testing.T) {
	null := must.Get(os.Open(os.DevNull))(t)
	defer null.Close()
	require.False(t, exec.IsTerminal(null), "a device is not a terminal")
	pty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no pseudo-terminal here:", err)
	}
	defer pty.Close()
	require.True(t, exec.IsTerminal(pty))
}

// TestWhatAPluginSaysIsInNoError has a plugin that prints a secret and fails.
func TestWhatAPluginSaysIsInNoError(t *testing.T) {
	o := options(t, "fail", variable("PASSWORD", secret))
	shown := &bytes.Buffer{}
	o.Terms.Stderr = shown
	_, err := newPlugin(t, o).Credentials(t.Context())
	require.ErrorIs(t, err, exec.ErrFailed)
	require.EqualError(t, err, "exec: credential plugin "+self(t)+": it failed: exit status 3; its standard error may have the reason")
	var typed *exec.Error
	require.ErrorAs(t, err, &typed)
	require.Equal(t, 3, typed.ExitCode)
	require.Contains(t, shown.String(), "log in with "+secret)

	said, theirs, err := os.Pipe()
	require.NoError(t, err)
	defer said.Close()
	ours := os.Stderr
	defer func() { os.Stderr = ours }()
	o.Terms.Stderr, os.Stderr = nil, theirs
	require.ErrorIs(t, must.Err(newPlugin(t, o).Credentials(t.Context())), exec.ErrFailed)
	require.NoError(t, theirs.Close())
	require.Contains(t, string(must.Get(io.ReadAll(said))(t)), "log in with "+secret, "the program's own standard error")

	_, err = newPlugin(t, options(t, "die")).Credentials(t.Context())
	require.ErrorIs(t, err, exec.ErrFailed)
	require.ErrorContains(t, err, "it failed: signal: killed")
	require.ErrorAs(t, err, &typed)
	require.Equal(t, -1, typed.ExitCode)
}

func TestACommandThatIsMissingComesWithItsHint(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	o := options(t, "none")
	o.Command, o.InstallHint = "aws-iam", "get it:\n\x1b[1m  brew install aws-iam"
	_, err := newPlugin(t, o).Credentials(t.Context())
	require.ErrorIs(t, err, exec.ErrNotFound)
	require.EqualError(t, err, "exec: credential plugin aws-iam: there is no such command in PATH; to install it: get it: \\u001b[1m brew install aws-iam")

	o.Command, o.InstallHint = filepath.Join(t.TempDir(), "gone"), ""
	_, err = newPlugin(t, o).Credentials(t.Context())
	require.ErrorIs(t, err, exec.ErrNotFound)
	require.EqualError(t, err, "exec: credential plugin "+o.Command+": there is no such command: "+o.Command)

	o.Command, o.InstallHint = filepath.Join(t.TempDir(), "text"), "hint"
	require.NoError(t, os.WriteFile(o.Command, []byte("text"), 0o600))
	_, err = newPlugin(t, o).Credentials(t.Context())
	require.ErrorIs(t, err, exec.ErrNotStarted)
	require.ErrorContains(t, err, "permission denied")
	require.NotContains(t, err.Error(), "hint", "it is installed")

	require.NoError(t, os.Chmod(o.Command, 0o700))
	_, err = newPlugin(t, o).Credentials(t.Context())
	require.ErrorIs(t, err, exec.ErrNotStarted)
	require.ErrorContains(t, err, "exec format error")
}

func TestCommandsAreFound(t *testing.T) {
	here, config, path := t.TempDir(), t.TempDir(), t.TempDir()
	executable(t, filepath.Join(here, "local"))
	executable(t, filepath.Join(here, "bin", "local"))
	executable(t, filepath.Join(config, "bin", "plugin"))
	executable(t, filepath.Join(path, "plugin"))
	t.Chdir(here)
	for _, c := range []struct {
		command, path string
		want          error
	}{
		{"plugin", path, nil},
		{"./plugin", path, exec.ErrNotFound}, // not even in PATH
		{"bin/plugin", "", nil},
		{"./bin/../bin/plugin", "", nil},
		{filepath.Join(path, "plugin"), "", nil},
		{"local", path, exec.ErrNotFound},
		{"bin/local", path, exec.ErrNotFound},
		{"local", "." + string(filepath.ListSeparator) + path, exec.ErrNotFound},
		{"local", string(filepath.ListSeparator) + path, exec.ErrNotFound},
	} {
		t.Setenv("PATH", c.path)
		o := options(t, "report")
		o.Command, o.Dir = c.command, config
		require.ErrorIs(t, must.Err(newPlugin(t, o).Credentials(t.Context())), c.want, c.command)
	}
}

func TestPoliciesCheckThePathThatRuns(t *testing.T) {
	good, evil := t.TempDir(), t.TempDir()
	executable(t, filepath.Join(good, "plugin"))
	executable(t, filepath.Join(evil, "plugin"))
	t.Setenv("PATH", good)
	list := func(entries ...string) exec.Policy {
		return exec.Policy{Type: exec.Allowlist, Allowlist: entries}
	}
	for _, c := range []struct {
		command string
		policy  exec.Policy
		want    error
	}{
		{"plugin", exec.Policy{}, nil},
		{"plugin", exec.Policy{Type: exec.AllowAll}, nil},
		{"plugin", exec.Policy{Type: exec.DenyAll}, exec.ErrNotAllowed},
		{"missing", exec.Policy{Type: exec.DenyAll}, exec.ErrNotAllowed},
		{"plugin", list("plugin"), nil},
		{"plugin", list("other", filepath.Join(good, "plugin")), nil},
		{filepath.Join(good, "plugin"), list("plugin"), nil},
		{filepath.Join(good, "..", filepath.Base(good), "plugin"), list("plugin"), nil},
		{"plugin", list("other", filepath.Join(evil, "plugin")), exec.ErrNotAllowed},
		{filepath.Join(evil, "plugin"), list("plugin"), exec.ErrNotAllowed},
		{"./plugin", list("plugin"), exec.ErrNotAllowed}, // beside the kubeconfig
	} {
		o := options(t, "report")
		o.Command, o.Dir, o.Terms.Policy = c.command, evil, c.policy
		require.ErrorIs(t, must.Err(newPlugin(t, o).Credentials(t.Context())), c.want, "%s %v", c.command, c.policy)
	}
}

func TestTooMuchOutputIsNotRead(t *testing.T) {
	_, err := newPlugin(t, options(t, "flood")).Credentials(t.Context())
	require.ErrorIs(t, err, exec.ErrTooMuchOutput)
	require.ErrorContains(t, err, "more than 1048576 bytes")
	require.NotContains(t, err.Error(), secret)
}

// listen waits for the plugin of a test to call, and returns what to give it as EXTRA.
func listen(t *testing.T) (net.Listener, exec.Variable) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	return l, variable("EXTRA", l.Addr().String())
}

// gone waits until the process at the other end is no more.
func gone(t *testing.T, conn net.Conn) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(30*time.Second)))
	n, err := io.Copy(io.Discard, conn)
	require.Zero(t, n)
	if err != nil {
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	}
}

func TestAPluginEndsWithItsChildren(t *testing.T) {
	for _, way := range []string{"all gave up", "time-out"} {
		t.Run(way, func(t *testing.T) {
			l, extra := listen(t)
			children := make(chan net.Conn, 100)
			go func() {
				for child, err := l.Accept(); err == nil; child, err = l.Accept() {
					children <- child
				}
			}()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			o := options(t, "hang", extra)
			if way == "time-out" {
				o.Terms.Timeout = time.Second
			}
			var child net.Conn
			ended := make(chan error, 1)
			for child == nil {
				p := newPlugin(t, o)
				go func() {
					_, err := p.Credentials(ctx)
					ended <- err
				}()
				select {
				case child = <-children:
				case err := <-ended: // a busy machine has not started the child in this time
					require.ErrorIs(t, err, exec.ErrTimeout)
					o.Terms.Timeout *= 2
				}
			}
			defer child.Close()
			if way == "time-out" {
				require.ErrorIs(t, <-ended, exec.ErrTimeout)
			} else {
				cancel()
				require.Equal(t, context.Canceled, <-ended)
			}
			gone(t, child)
		})
	}
}

func TestAnInteractivePluginEndsToo(t *testing.T) {
	l, extra := listen(t)
	o := options(t, "hold", extra)
	o.InteractiveMode, o.Terms.Stderr = exec.Always, io.Discard
	p := newPlugin(t, o)
	p.FakeTerminal(true)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := p.Credentials(ctx)
		ended <- err
	}()
	conn := must.Get(l.Accept())(t)
	defer conn.Close()
	cancel()
	require.Equal(t, context.Canceled, <-ended)
	gone(t, conn)
}

func TestADaemonOfAPluginDoesNotDelayACall(t *testing.T) {
	l, extra := listen(t)
	require.Equal(t, "left", must.Get(newPlugin(t, options(t, "leave", extra)).Credentials(t.Context()))(t).Token.Reveal())
	daemon := must.Get(l.Accept())(t)
	require.NoError(t, daemon.Close()) // which ends it
}

func TestInfoThatIsTooLargeForAnEnvironment(t *testing.T) {
	o := options(t, "report")
	o.Cluster = &exec.Cluster{Server: "https://s", CAData: bytes.Repeat([]byte("c"), 16<<20)}
	_, err := newPlugin(t, o).Credentials(t.Context())
	require.ErrorIs(t, err, exec.ErrNotStarted)
	require.ErrorContains(t, err, "too long")
	require.Less(t, len(err.Error()), 1000)
	require.False(t, strings.Contains(err.Error(), "Y2Nj"))
}
