package apiclient_test

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture/must"
)

func TestNewNamesTheInvalidField(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	text := filepath.Join(dir, "text")
	require.NoError(t, os.WriteFile(text, []byte("two\nlines"), 0o600))
	missing := filepath.Join(dir, "missing")
	ca := newAuthority(t)
	cert, key := ca.client(t, "jane")
	_, otherKey := ca.client(t, "joe")
	const host = "https://h"

	cases := []struct {
		name  string
		cfg   apiclient.Config
		field string
		want  string
	}{
		{"no host", apiclient.Config{}, "Host", "it is empty"},
		{"no scheme", apiclient.Config{Host: "localhost:8080"}, "Host", `"localhost:8080" has no scheme: put https:// or`},
		{"a bare name", apiclient.Config{Host: "server"}, "Host", "has no scheme"},
		{"another scheme", apiclient.Config{Host: "ftp://h"}, "Host", `scheme "ftp"`},
		{"no name", apiclient.Config{Host: "https://:443"}, "Host", "has no host"},
		{"a query", apiclient.Config{Host: "https://h?a=b"}, "Host", "a query"},
		{"a bad port", apiclient.Config{Host: "https://h:port"}, "Host", "invalid port"},
		{"a password", apiclient.Config{Host: "https://u:" + secret + "@h"}, "Host", "a user or password"},
		{"a broken password", apiclient.Config{Host: "https://u:" + secret + "/@h"}, "Host", "a user or password"},
		{"token and user", apiclient.Config{Host: host, BearerToken: apiclient.NewSecret(secret), Username: "u"}, "Username", "conflicts with a bearer token"},
		{"password alone", apiclient.Config{Host: host, Password: apiclient.NewSecret(secret)}, "Username", "it is empty"},
		{"colon", apiclient.Config{Host: host, Username: "a:b"}, "Username", "colon"},
		{"token of two lines", apiclient.Config{Host: host, BearerToken: apiclient.NewSecret(secret + "\n")}, "BearerToken", "line break"},
		{"token file missing", apiclient.Config{Host: host, BearerTokenFile: missing}, "BearerTokenFile", missing},
		{"token file empty", apiclient.Config{Host: host, BearerTokenFile: empty}, "BearerTokenFile", "is empty"},
		{"token file of two lines", apiclient.Config{Host: host, BearerTokenFile: text}, "BearerTokenFile", "more than a token"},
		{"user agent", apiclient.Config{Host: host, UserAgent: "a\r\nb: c"}, "UserAgent", "control character"},
		{"CA missing", apiclient.Config{Host: host, TLS: apiclient.TLS{CAFile: missing}}, "TLS.CAFile", missing},
		{"CA empty", apiclient.Config{Host: host, TLS: apiclient.TLS{CAFile: empty}}, "TLS.CAFile", "is empty"},
		{"host with a query", apiclient.Config{Host: "https://h/a?token=" + secret}, "Host", `"https://h/a" has a query`},
		{"host with a fragment", apiclient.Config{Host: "https://h/a#" + secret}, "Host", `"https://h/a" has a query`},
		{"no scheme and a query", apiclient.Config{Host: "h?token=" + secret}, "Host", `"h" has no scheme: put https:// or`},
		{"CA file not PEM", apiclient.Config{Host: host, TLS: apiclient.TLS{CAFile: text}}, "TLS.CAFile", "no certificate in PEM"},
		{"CA data not PEM", apiclient.Config{Host: host, TLS: apiclient.TLS{CAData: []byte("x")}}, "TLS.CAData", "no certificate in PEM"},
		{"CA and insecure", apiclient.Config{Host: host, TLS: apiclient.TLS{CAData: ca.pem, Insecure: true}}, "TLS.Insecure", "authorities"},
		{"certificate without key", apiclient.Config{Host: host, TLS: apiclient.TLS{CertData: cert}}, "TLS.KeyData", "needs a key"},
		{"key without certificate", apiclient.Config{Host: host, TLS: apiclient.TLS{KeyData: apiclient.NewSecret(string(key))}}, "TLS.CertData", "needs a certificate"},
		{"another's key", apiclient.Config{Host: host, TLS: apiclient.TLS{CertData: cert, KeyData: apiclient.NewSecret(string(otherKey))}}, "TLS.CertData", "does not match"},
		{"key of nothing", apiclient.Config{Host: host, TLS: apiclient.TLS{CertData: cert, KeyData: apiclient.NewSecret("x")}}, "TLS.KeyData", "no private key"},
		{"key encrypted", apiclient.Config{Host: host, TLS: apiclient.TLS{CertData: cert, KeyData: apiclient.NewSecret(strings.ReplaceAll(string(key), "EC PRIVATE", "ENCRYPTED PRIVATE"))}}, "TLS.KeyData", "is encrypted"},
		{"key encrypted in the old way", apiclient.Config{Host: host, TLS: apiclient.TLS{CertData: cert, KeyData: apiclient.NewSecret(strings.Replace(string(key), "KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\n\n", 1))}}, "TLS.KeyData", "is encrypted"},
		{"certificate cut short", apiclient.Config{Host: host, TLS: apiclient.TLS{CertData: cert[:len(cert)/2], KeyData: apiclient.NewSecret(string(key))}}, "TLS.CertData", "cut or invalid"},
		{"CA cut short", apiclient.Config{Host: host, TLS: apiclient.TLS{CAData: append(append([]byte{}, ca.pem...), ca.pem[:99]...)}}, "TLS.CAData", "cut or invalid"},
		{"key missing", apiclient.Config{Host: host, TLS: apiclient.TLS{CertData: cert, KeyFile: missing}}, "TLS.KeyFile", missing},
		{"proxy", apiclient.Config{Host: host, ProxyURL: proxy("gopher://u:" + secret + "@h")}, "ProxyURL", `"gopher"`},
		{"proxy without host", apiclient.Config{Host: host, ProxyURL: proxy("http://")}, "ProxyURL", "has no host"},
		{"impersonated groups only", apiclient.Config{Host: host, Impersonate: apiclient.Impersonate{Groups: []string{"g"}}}, "Impersonate.UserName", "it is empty"},
		{"impersonated line break", apiclient.Config{Host: host, Impersonate: apiclient.Impersonate{UserName: "a\nb"}}, "Impersonate", "control character"},
		{"transport and TLS", apiclient.Config{Host: host, Transport: http.DefaultTransport, TLS: apiclient.TLS{Insecure: true}}, "TLS", "it conflicts with Transport"},
		{"transport and proxy", apiclient.Config{Host: host, Transport: http.DefaultTransport, ProxyURL: proxy("http://p")}, "ProxyURL", "it conflicts with Transport"},
		{"transport and dialler", apiclient.Config{Host: host, Transport: http.DefaultTransport, DialContext: (&net.Dialer{}).DialContext}, "DialContext", "it conflicts with Transport"},
		{"transport and wrapper", apiclient.Config{Host: host, Transport: http.DefaultTransport, WrapTransport: same}, "WrapTransport", "it conflicts with Transport"},
		{"no wrapper", apiclient.Config{Host: host, WrapTransport: func(http.RoundTripper) http.RoundTripper { return nil }}, "WrapTransport", "it returned nil"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			client, err := apiclient.New(c.cfg)
			require.Nil(t, client)
			var field *apiclient.FieldError
			require.ErrorAs(t, err, &field)
			require.Equal(t, c.field, field.Field)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), secret)
			require.NotContains(t, err.Error(), "\n", "one line")
		})
	}
}

// proxy parses a URL.
func proxy(text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil {
		panic(err)
	}
	return u
}

// secretive returns a configuration in which every credential is the secret.
func secretive() apiclient.Config {
	return apiclient.Config{
		Host:        "https://joe:" + secret + "@server.example/base",
		BearerToken: apiclient.NewSecret(secret), Username: "joe", Password: apiclient.NewSecret(secret), BearerTokenFile: "/run/token",
		ProxyURL: proxy("http://joe:" + secret + "@proxy.example"),
		TLS:      apiclient.TLS{CAData: []byte("ca"), KeyData: apiclient.NewSecret(secret), CertData: []byte("cert"), KeyFile: "/run/key"},
	}
}

func TestNoCredentialIsPrinted(t *testing.T) {
	cfg := secretive()
	type holder struct {
		Config  apiclient.Config
		Pointer *apiclient.Config
		Any     any
		List    []apiclient.Config
		Map     map[string]apiclient.TLS
	}
	h := holder{Config: cfg, Pointer: &cfg, Any: cfg, List: []apiclient.Config{cfg}, Map: map[string]apiclient.TLS{"k": cfg.TLS}}
	ok := cfg
	ok.Host, ok.Username, ok.Password, ok.BearerTokenFile, ok.TLS = "https://server.example", "", apiclient.Secret{}, "", apiclient.TLS{}
	// fmt calls no methods for unexported fields.
	private := struct {
		config apiclient.Config
		client *apiclient.Client
	}{ok, nil}
	client := must.Get(apiclient.New(ok))(t)
	view := apiclient.NewPartial[*pod](client, podResource, "")

	values := []any{cfg, &cfg, cfg.TLS, &cfg.TLS, h, &h, client, view, view.Identity(), []any{cfg}, private, &private, cfg.BearerToken, &cfg.Password, fmt.Errorf("with %v", cfg)}
	for _, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%10.3v", "%T", "%o", "%U", "%e"} {
			printed := fmt.Sprintf(verb, v)
			require.NotContains(t, printed, secret, "%T with %s", v, verb)
			require.NotContains(t, printed, fmt.Sprintf("%x", secret), "%T with %s", v, verb)
			require.NotContains(t, printed, fmt.Sprintf("%d", []byte(secret)), "%T with %s", v, verb)
		}
		b := must.Get(json.Marshal(v))(t)
		require.NotContains(t, string(b), secret)
		require.NotContains(t, string(b), "czNjcjN0", "base64")
	}
	require.Contains(t, cfg.String(), "server.example/base")
	require.Contains(t, cfg.String(), "REDACTED")
	require.Contains(t, cfg.GoString(), "/run/token")
	require.Equal(t, "apiclient.Client(https://server.example)", fmt.Sprintf("%+v", client))
}

func TestACertificateIsMarshalledWithoutItsKey(t *testing.T) {
	cert, key := newAuthority(t).client(t, "jane")
	pair := must.Get(tls.X509KeyPair(cert, key))(t)
	text := must.Get(json.Marshal(map[string]any{"c": apiclient.Credentials{Token: apiclient.NewSecret(secret), Certificate: &pair}, "none": apiclient.Credentials{}}))(t)
	require.JSONEq(t, `{"c":{"token":"REDACTED","certificate":"CN=jane"},"none":{}}`, string(text))
}

func TestNoCredentialIsLogged(t *testing.T) {
	var out strings.Builder
	core := zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(&out), zap.DebugLevel)
	cfg := secretive()
	zap.New(core).Info("started", zap.Any("config", cfg), zap.Any("tls", cfg.TLS), zap.Reflect("again", &cfg), zap.Stringer("s", cfg))
	slog.New(slog.NewJSONHandler(&out, nil)).Info("started", "config", cfg)
	slog.New(slog.NewTextHandler(&out, nil)).Info("started", "config", cfg, "tls", cfg.TLS)
	require.NotContains(t, out.String(), secret)
	require.NotContains(t, out.String(), "czNjcjN0", "base64")
	require.Contains(t, out.String(), "REDACTED")
}

func TestInCluster(t *testing.T) {
	dir := t.TempDir()
	env := map[string]string{}
	getenv := func(k string) string { return env[k] }

	require.ErrorIs(t, must.Err(apiclient.InClusterAt(getenv, dir)), apiclient.ErrNotInCluster)

	env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"] = "fd00::1", "443"
	_, err := apiclient.InClusterAt(getenv, dir)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.False(t, errors.Is(err, apiclient.ErrNotInCluster))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "token"), []byte(secret+"\n"), 0o600))
	cfg := must.Get(apiclient.InClusterAt(getenv, dir))(t)
	require.Equal(t, apiclient.Config{
		Host: "https://[fd00::1]:443", BearerTokenFile: filepath.Join(dir, "token"),
		TLS: apiclient.TLS{CAFile: filepath.Join(dir, "ca.crt")},
	}, cfg)

	require.Empty(t, apiclient.InClusterNamespaceAt(getenv, dir))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "namespace"), []byte("shop\n"), 0o600))
	require.Equal(t, "shop", apiclient.InClusterNamespaceAt(getenv, dir))
	env["POD_NAMESPACE"] = "mine"
	require.Equal(t, "mine", apiclient.InClusterNamespaceAt(getenv, dir))
}
