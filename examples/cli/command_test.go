package cli_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/examples/cli"
	"github.com/leatproject/leat/program"
)

func TestErrorsAreOneLine(t *testing.T) {
	works := func(context.Context, *program.Program) error { return nil }
	for name, c := range map[string]struct {
		args   []string
		work   func(context.Context, *program.Program) error
		code   int
		prints string // the whole output, or its beginning if it ends in dots
	}{
		"nothing":                   {[]string{"--server", "http://127.0.0.1:1"}, works, 0, ""},
		"unknown flag":              {[]string{"--colour"}, works, 2, "mill: flag provided but not defined: -colour\n"},
		"argument":                  {[]string{"now"}, works, 2, "mill: unexpected argument \"now\"\n"},
		"page without a server":     {[]string{"--page"}, works, 2, "mill: --page needs --admin, whose server serves the page\n"},
		"no workers":                {[]string{"--workers", "0"}, works, 2, "mill: --workers is 0; it must be at least 1\n"},
		"lease without a namespace": {[]string{"--lease", "mill"}, works, 2, "mill: invalid value \"mill\" for flag -lease: \"mill\" is not namespace/name\n"},
		"lease with three parts":    {[]string{"--lease", "a/b/c"}, works, 2, "mill: invalid value \"a/b/c\" for flag -lease: ..."},
		"flag of the example":       {[]string{"--stones", "many"}, works, 2, "mill: invalid value \"many\" for flag -stones: ..."},
		"no kubeconfig":             {[]string{"--kubeconfig", "/nowhere"}, works, 1, "mill: ..."},
		"failure of Work": {
			[]string{"--server", "http://127.0.0.1:1"},
			func(context.Context, *program.Program) error {
				return errors.Join(errors.New("no water"), errors.New("no grain"))
			},
			1, "mill: no water; no grain\n",
		},
	} {
		var stderr bytes.Buffer
		command := cli.Command{Name: "mill", Work: c.work, Flags: func(f *flag.FlagSet) { f.Int("stones", 2, "how many stones turn") }}
		require.Equal(t, c.code, command.Run(t.Context(), c.args, &stderr), name)
		begins, open := strings.CutSuffix(c.prints, "...")
		if !open {
			require.Equal(t, c.prints, stderr.String(), name)
			continue
		}
		require.True(t, strings.HasPrefix(stderr.String(), begins), "%s: %s", name, &stderr)
		require.Equal(t, 1, strings.Count(stderr.String(), "\n"), "%s: %s", name, &stderr)
	}
}

func TestHelpNamesAllFlags(t *testing.T) {
	var stderr bytes.Buffer
	command := cli.Command{Name: "mill", Flags: func(f *flag.FlagSet) { f.Int("stones", 2, "how many stones turn") }}
	require.Zero(t, command.Run(t.Context(), []string{"-h"}, &stderr))
	for _, name := range []string{"-kubeconfig", "-context", "-server", "-token", "-namespace", "-lease", "-admin", "-stones"} {
		require.Contains(t, stderr.String(), "\n  "+name+" ")
	}
}

func TestWorkGetsTheFlags(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	ctx, interrupt := context.WithCancel(t.Context())
	var got program.Options
	command := cli.Command{Name: "mill", Work: func(ctx context.Context, p *program.Program) error {
		got = p.Options()
		require.Equal(t, "http://"+l.Addr().String(), p.Client.Host())
		interrupt()
		<-ctx.Done()
		return nil
	}}
	var stderr bytes.Buffer
	require.Zero(t, command.Run(ctx, []string{
		"--server", "http://" + l.Addr().String(), "--namespace", "shop", "--workers", "7", "--sync-timeout", "3s",
		"--lease", "shop/mill", "--admin", "127.0.0.1:0",
	}, &stderr))
	require.Empty(t, stderr.String())
	want := cli.Options{
		Namespace: "shop", Workers: 7, SyncTimeout: 3 * time.Second, Lease: api.Key{Namespace: "shop", Name: "mill"}, Admin: "127.0.0.1:0",
	}
	got.Name, got.Config, got.Logger = "", apiclient.Config{}, nil
	require.Equal(t, want.Apply(program.Options{}), got)
}
