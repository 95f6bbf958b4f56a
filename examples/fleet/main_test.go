package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/manager"
)

func TestFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--replicas 0":     "--replicas is 0; it must be 1 to 50",
		"--deployments -1": "--deployments is -1; it must not be negative",
		"--kill -1s":       "--kill, --join, --rollout and --for must not be negative",
		"--namespace=":     "--namespace is empty",
		"--nonsense":       "flag provided but not defined: -nonsense",
		"replica":          `unexpected argument "replica"; fleet has only flags, see --help`,
		"--join yesterday": `invalid value "yesterday" for flag -join: parse error`,
	} {
		_, err := parse(strings.Fields(args), &bytes.Buffer{})
		require.EqualError(t, err, want)
	}
	var help bytes.Buffer
	_, err := parse([]string{"--help"}, &help)
	require.ErrorIs(t, err, flag.ErrHelp)
	require.Contains(t, help.String(), "-kubeconfig")
	o, err := parse([]string{"--replicas", "3", "--kill", "5s"}, &help)
	require.NoError(t, err)
	require.Equal(t, 3, o.replicas)
	require.False(t, o.page)
}

// TestPage opens the page whose URL a replica prints.
func TestPage(t *testing.T) {
	var out bytes.Buffer
	admin, err := servePage("replica-7", &out)
	require.NoError(t, err)
	m, err := manager.New(manager.Options{Admin: admin})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	url, found := strings.CutPrefix(strings.TrimSpace(out.String()), "live page of replica-7 on ")
	require.True(t, found, out.String())
	answer, err := http.Get(url + "state")
	require.NoError(t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, errors.Join(err, answer.Body.Close()))
	require.Contains(t, string(body), `"program":"replica-7"`)
	http.DefaultClient.CloseIdleConnections()
	cancel()
	require.NoError(t, <-ended)
}

func TestBar(t *testing.T) {
	half := bar(hashrange.NewSet(hashrange.Range{From: 1 << 63}))
	require.Equal(t, strings.Repeat("·", columns/2)+strings.Repeat("█", columns/2), half)
	require.Equal(t, columns, utf8.RuneCountInString(bar(nil)))
}

// TestEveryReplicaThatHangsIsKilled ends two replicas that ignore the signal.
func TestEveryReplicaThatHangsIsKilled(t *testing.T) {
	f := &fleet{failed: make(chan error, 2)}
	for _, identity := range []string{"a", "b"} {
		p := &process{identity: identity, ended: make(chan struct{}), cmd: exec.Command("sh", "-c", "trap '' INT; echo ready; exec sleep 1000")}
		out := must.Get(p.cmd.StdoutPipe())(t)
		require.NoError(t, p.cmd.Start())
		must.Get(io.ReadFull(out, make([]byte, len("ready"))))(t)
		f.follow(p)
	}
	f.end(time.Millisecond)
	require.ErrorContains(t, <-f.failed, "killed")
	require.ErrorContains(t, <-f.failed, "killed")
}
