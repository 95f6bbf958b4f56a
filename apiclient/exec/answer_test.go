package exec_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/apiclient/exec"
	"github.com/leatproject/leat/internal/fixture/must"
)

func TestBadAnswersAreErrorsOfTheirOwn(t *testing.T) {
	cert, key := certificate(t, time.Hour)
	_, otherKey := certificate(t, time.Hour)
	oldCert, oldKey := certificate(t, -time.Minute)
	v1 := func(status map[string]any) string { return answer(exec.V1, status) }
	cases := []struct {
		name, printed string
		want          error
		text          string
	}{
		{"nothing", "", exec.ErrMalformed, "it is empty"},
		{"blank", " \n", exec.ErrMalformed, "it is empty"},
		{"garbage", secret, exec.ErrMalformed, "it is not JSON from byte 1 on"},
		{"a bare token", `"` + secret + `"`, exec.ErrMalformed, "it is not an object"},
		{"YAML", "kind: ExecCredential\nstatus: {token: " + secret + "}", exec.ErrMalformed, "it is not JSON"},
		{"a list", `["` + secret + `"]`, exec.ErrMalformed, "it is not an object"},
		{"null", "null", exec.ErrMalformed, `its kind is ""`},
		{"cut", v1(map[string]any{"token": secret})[:70], exec.ErrMalformed, "it is not JSON from byte 70 on"},
		{"two objects", v1(map[string]any{"token": secret}) + v1(map[string]any{"token": secret}), exec.ErrMalformed, "it is not JSON from byte"},
		{"a log line first", "time=now token=" + secret + "\n" + v1(map[string]any{"token": secret}), exec.ErrMalformed, "it is not JSON"},
		{"another kind", `{"kind":"Status","apiVersion":"v1"}`, exec.ErrMalformed, `its kind is "Status"`},
		{"a kind without end", `{"kind":"` + strings.Repeat("k", 1000) + `"}`, exec.ErrMalformed, `its kind is "` + strings.Repeat("k", 80) + `"`},
		{"no kind", `{"apiVersion":"` + exec.V1 + `","status":{"token":"` + secret + `"}}`, exec.ErrMalformed, `its kind is ""`},
		{"another version", answer(exec.V1Beta1, map[string]any{"token": secret}), exec.ErrVersion, `"` + exec.V1Beta1 + `" instead of ` + exec.V1},
		{"the first version", answer("client.authentication.k8s.io/v1alpha1", map[string]any{"token": secret}), exec.ErrVersion, "v1alpha1"},
		{"no version", `{"kind":"ExecCredential","status":{"token":"` + secret + `"}}`, exec.ErrVersion, `"" instead of`},
		{"no status", `{"kind":"ExecCredential","apiVersion":"` + exec.V1 + `"}`, exec.ErrNoCredentials, ""},
		{"an empty status", v1(map[string]any{}), exec.ErrNoCredentials, ""},
		{"an empty token", v1(map[string]any{"token": "", "expirationTimestamp": nil}), exec.ErrNoCredentials, ""},
		{"a token that is a number", v1(map[string]any{"token": 1234567}), exec.ErrMalformed, "status.token has the wrong type"},
		{"a token of two lines", v1(map[string]any{"token": secret + "\n"}), exec.ErrMalformed, "control character"},
		{"a date of another form", v1(map[string]any{"token": secret, "expirationTimestamp": secret}), exec.ErrMalformed, "expirationTimestamp is not a time"},
		{"an empty date", v1(map[string]any{"token": secret, "expirationTimestamp": ""}), exec.ErrMalformed, "expirationTimestamp is not a time"},
		{"a token that has expired", v1(map[string]any{"token": secret, "expirationTimestamp": "2001-02-03T04:05:06+01:00"}), exec.ErrExpired, "on 2001-02-03T03:05:06Z, and it is 2"},
		{"a certificate without a key", v1(map[string]any{"clientCertificateData": cert}), exec.ErrCertificate, "without a key"},
		{"a key without a certificate", v1(map[string]any{"clientKeyData": key}), exec.ErrCertificate, "no certificate"},
		{"a token, and half a pair", v1(map[string]any{"token": secret, "clientKeyData": key}), exec.ErrCertificate, "no certificate"},
		{"a text instead of a certificate", v1(map[string]any{"clientCertificateData": secret, "clientKeyData": key}), exec.ErrCertificate, "PEM"},
		{"a text instead of a key", v1(map[string]any{"clientCertificateData": cert, "clientKeyData": secret}), exec.ErrCertificate, "PEM"},
		{"a key of another certificate", v1(map[string]any{"clientCertificateData": cert, "clientKeyData": otherKey}), exec.ErrCertificate, "does not match"},
		{"a certificate that has expired", v1(map[string]any{"token": secret, "clientCertificateData": oldCert, "clientKeyData": oldKey}), exec.ErrExpired, "on "},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := newPlugin(t, options(t, "none"))
			p.Fake(func(context.Context, exec.Run) ([]byte, error) { return []byte(c.printed), nil })
			_, err := p.Credentials(t.Context())
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.text)
			var typed *exec.Error
			require.ErrorAs(t, err, &typed)
			require.Equal(t, self(t), typed.Command)
			for _, private := range []string{secret, "1234567", key, otherKey, oldKey} {
				require.NotContains(t, err.Error(), private)
			}
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add(answer(exec.V1, map[string]any{"token": "t", "expirationTimestamp": "2001-02-03T04:05:06Z"}))
	f.Add(answer(exec.V1, map[string]any{"clientCertificateData": "-----BEGIN CERTIFICATE-----", "clientKeyData": "k"}))
	f.Add(`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":null}`)
	f.Add(`[`)
	f.Fuzz(func(t *testing.T, printed string) {
		p := newPlugin(t, options(t, "none"))
		p.Fake(func(context.Context, exec.Run) ([]byte, error) { return []byte(printed), nil })
		c, err := p.Credentials(t.Context())
		if err == nil {
			require.True(t, !c.Token.IsZero() || c.Certificate != nil)
			return
		}
		var typed *exec.Error
		require.ErrorAs(t, err, &typed)
		require.Less(t, len(err.Error()), 2000)
	})
}

// info returns the request that a plugin gets.
func info(t *testing.T, o exec.Options) string {
	t.Helper()
	p := newPlugin(t, o)
	var got exec.Run
	p.Fake(func(_ context.Context, r exec.Run) ([]byte, error) {
		got = r
		return []byte(answer(o.APIVersion, map[string]any{"token": "t"})), nil
	})
	must.Get(p.Credentials(t.Context()))(t)
	return got.Info
}

func TestPluginsGetTheCluster(t *testing.T) {
	o := options(t, "none")
	require.Equal(t, `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false}}`, info(t, o))
	o.APIVersion = exec.V1Beta1
	require.Equal(t, `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1","spec":{"interactive":false}}`, info(t, o))

	o.APIVersion = exec.V1
	o.Cluster = &exec.Cluster{
		Server: "https://a:1", TLSServerName: "n", Insecure: true, CAData: []byte("ca"), CAFile: "/not/read",
		ProxyURL: &url.URL{Scheme: "http", Host: "p", User: url.UserPassword("u", "w")}, DisableCompression: true,
		Config: []byte(`{"audience":"x"}`),
	}
	require.JSONEq(t, `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false,"cluster":{
		"server":"https://a:1","tls-server-name":"n","insecure-skip-tls-verify":true,"certificate-authority-data":"Y2E=",
		"proxy-url":"http://u:w@p","disable-compression":true,"config":{"audience":"x"}}}}`, info(t, o))

	file := filepath.Join(t.TempDir(), "ca")
	require.NoError(t, os.WriteFile(file, []byte("file"), 0o600))
	o.Cluster = &exec.Cluster{Server: "https://a:1", CAFile: file}
	require.JSONEq(t, `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false,"cluster":{
		"server":"https://a:1","certificate-authority-data":"ZmlsZQ=="}}}`, info(t, o))

	o.Cluster.CAFile += "-that-is-missing"
	_, err := newPlugin(t, o).Credentials(t.Context())
	require.ErrorIs(t, err, exec.ErrNotStarted)
	require.ErrorContains(t, err, "the cluster's authorities: read "+o.Cluster.CAFile)

	require.NoError(t, os.Truncate(file, 1<<40))
	o.Cluster.CAFile = file
	_, err = newPlugin(t, o).Credentials(t.Context())
	require.ErrorContains(t, err, "the cluster's authorities: read "+file+": it is larger than 4 MiB")
}

func TestInteractiveModes(t *testing.T) {
	for _, c := range []struct {
		mode        exec.InteractiveMode
		terminal    bool
		unavailable string
		interactive bool
		text        string
	}{
		{exec.Never, true, "", false, ""},
		{exec.Never, false, "", false, ""},
		{exec.IfAvailable, true, "", true, ""},
		{exec.IfAvailable, false, "", false, ""},
		{exec.IfAvailable, true, "it is the manifest", false, ""},
		{exec.Always, true, "", true, ""},
		{exec.Always, false, "", false, "it cannot run without standard input: it is not a terminal"},
		{exec.Always, true, "it is the manifest", false, "it cannot run without standard input: it is not available: it is the manifest"},
	} {
		t.Run(fmt.Sprint(c.mode, c.terminal, c.unavailable != ""), func(t *testing.T) {
			o := options(t, "none")
			o.InteractiveMode, o.Terms.StdinUnavailable = c.mode, c.unavailable
			p := newPlugin(t, o)
			p.FakeTerminal(c.terminal)
			p.Fake(func(_ context.Context, r exec.Run) ([]byte, error) {
				require.Equal(t, c.interactive, r.Interactive)
				require.Equal(t, c.interactive, strings.Contains(r.Info, `"interactive":true`))
				return token("t", 0)
			})
			_, err := p.Credentials(t.Context())
			if c.text == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, exec.ErrNoTerminal)
			require.ErrorContains(t, err, c.text)
		})
	}
}

func TestNewNamesTheInvalidField(t *testing.T) {
	for _, c := range []struct {
		change      func(*exec.Options)
		field, text string
	}{
		{func(o *exec.Options) { o.Command = "" }, "Command", "it is empty"},
		{func(o *exec.Options) { o.Command = "a\x00b" }, "Command", "NUL"},
		{func(o *exec.Options) { o.APIVersion = "" }, "APIVersion", "it is empty"},
		{func(o *exec.Options) { o.APIVersion = "client.authentication.k8s.io/v1alpha1" }, "APIVersion", "v1alpha1"},
		{func(o *exec.Options) { o.InteractiveMode = "" }, "InteractiveMode", "it is empty"},
		{func(o *exec.Options) { o.InteractiveMode = "never" }, "InteractiveMode", `"never" is not known`},
		{func(o *exec.Options) { o.Env = []exec.Variable{variable("", secret)} }, "Env", `"" cannot be a variable`},
		{func(o *exec.Options) { o.Env = []exec.Variable{variable("a=b", secret)} }, "Env", `"a=b" cannot`},
		{func(o *exec.Options) { o.Env = []exec.Variable{variable("a", secret+"\x00")} }, "Env", `"a" cannot`},
		{func(o *exec.Options) { o.Cluster = &exec.Cluster{Config: []byte(secret)} }, "Cluster.Config", "it is not JSON"},
		{func(o *exec.Options) { o.Terms.Timeout = -1 }, "Terms.Timeout", "negative"},
		{func(o *exec.Options) { o.Terms.Policy.Type = "denyall" }, "Terms.Policy", `type "denyall" is not known`},
		{func(o *exec.Options) { o.Terms.Policy.Allowlist = []string{"a"} }, "Terms.Policy", `the type is ""`},
		{func(o *exec.Options) { o.Terms.Policy.Type = exec.Allowlist }, "Terms.Policy", "the allow-list is empty"},
		{func(o *exec.Options) { o.Terms.Policy = exec.Policy{Type: exec.Allowlist, Allowlist: []string{""}} }, "Terms.Policy", "an entry of the allow-list is empty"},
		{func(o *exec.Options) {
			o.Terms.Policy = exec.Policy{Type: exec.Allowlist, Allowlist: []string{"bin/a"}}
		}, "Terms.Policy", `"bin/a" of the allow-list is neither`},
		{func(o *exec.Options) { o.Terms.Policy = exec.Policy{Type: exec.DenyAll, Allowlist: []string{"a"}} }, "Terms.Policy", `the type is "DenyAll"`},
	} {
		o := options(t, "none")
		c.change(&o)
		_, err := exec.New(o)
		var typed *exec.FieldError
		require.ErrorAs(t, err, &typed)
		require.Equal(t, c.field, typed.Field)
		require.ErrorContains(t, err, "exec: Options."+c.field+": ")
		require.ErrorContains(t, err, c.text)
		require.NotContains(t, err.Error(), secret)
	}
	o := options(t, "none")
	o.APIVersion, o.InteractiveMode = exec.V1Beta1, ""
	p := newPlugin(t, o)
	p.FakeTerminal(true)
	p.Fake(func(_ context.Context, r exec.Run) ([]byte, error) {
		require.True(t, r.Interactive, "the old version has a default")
		return []byte(answer(exec.V1Beta1, map[string]any{"token": "t"})), nil
	})
	must.Get(p.Credentials(t.Context()))(t)
}
