package secret_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/apiclient/internal/secret"
	"github.com/leatproject/leat/internal/fixture/must"
)

const text = "s3cr3t-t0ken"

func TestASecretShowsOnlyThatThereIsOne(t *testing.T) {
	s := secret.New(text)
	require.Equal(t, text, s.Reveal())
	for _, v := range []any{s, &s, struct{ Token secret.Secret }{s}, struct{ token secret.Secret }{s}, []secret.Secret{s}, map[string]secret.Secret{"a": s}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			require.NotContains(t, fmt.Sprintf(verb, v), text, verb)
			require.NotContains(t, fmt.Sprintf(verb, v), fmt.Sprintf("%x", text), verb)
		}
		require.NotContains(t, string(must.Get(json.Marshal(v))(t)), text)
	}
	require.Equal(t, "REDACTED REDACTED", fmt.Sprint(s, " ", s.GoString()))
}

func TestAnEmptyTextIsNoCredential(t *testing.T) {
	require.True(t, secret.New("").IsZero())
	require.Equal(t, secret.Secret{}, secret.New(""))
	require.Empty(t, fmt.Sprint(secret.Secret{}, secret.Secret{}.Reveal()))
	require.False(t, secret.New("x").IsZero())
}

func TestHideUser(t *testing.T) {
	for url, want := range map[string]string{
		"https://h:6443/a":         "https://h:6443/a",
		"https://joe:pw@h/a":       "https://REDACTED@h/a",
		"https://joe@h":            "https://REDACTED@h",
		"https://h/a@b":            "REDACTED",
		"https://joe:p%zz@h":       "REDACTED",
		"not a URL, with an @ too": "REDACTED",
	} {
		require.Equal(t, want, secret.HideUser(url))
	}
}
