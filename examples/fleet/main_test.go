package main

import (
	"bytes"
	"flag"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/shard/hashrange"
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
}

func TestBar(t *testing.T) {
	half := bar(hashrange.NewSet(hashrange.Range{From: 1 << 63}))
	require.Equal(t, strings.Repeat("·", columns/2)+strings.Repeat("█", columns/2), half)
	require.Equal(t, columns, utf8.RuneCountInString(bar(nil)))
}
