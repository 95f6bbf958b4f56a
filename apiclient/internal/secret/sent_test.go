package secret_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/apiclient/internal/secret"
	"github.com/leatproject/leat/internal/fixture/must"
)

// sent has a token and a password.
func sent(token, password string) *secret.Sent {
	s := &secret.Sent{}
	s.AddToken(secret.New(token))
	s.AddPassword("joe", password)
	return s
}

func TestWhatWasSentIsRemovedInEveryEncoding(t *testing.T) {
	for _, odd := range []string{text, text + `"<&>"`, text + "\t/+=?%é"} {
		quoted := must.Get(json.Marshal(odd))(t)
		for name, encoded := range map[string]string{
			"plain": odd, "HTML": html.EscapeString(odd), "a query": url.QueryEscape(odd), "a path": url.PathEscape(odd),
			"JSON": string(quoted), "Go": fmt.Sprintf("%q", odd),
		} {
			clean := sent(odd, "").Clean("before " + encoded + " after")
			require.NotContains(t, clean, text, name)
			require.True(t, strings.HasPrefix(clean, "before ") && strings.HasSuffix(clean, " after"), clean)
			require.Contains(t, clean, secret.Redacted, name)
		}
	}
	basic := base64.StdEncoding.EncodeToString([]byte("joe:pass-word"))
	require.Equal(t, basic, (&secret.Sent{}).AddPassword("joe", "pass-word"))
	require.Equal(t, "Basic REDACTED, REDACTED", sent("", "pass-word").Clean("Basic "+basic+", pass-word"))
	require.Equal(t, "nothing was sent", sent("", "").Clean("nothing was sent"))
}

func TestTheLongestSecretIsRemovedWhole(t *testing.T) {
	s := &secret.Sent{}
	s.AddToken(secret.New(text))
	s.AddToken(secret.New(text + "-of-another-issuer"))
	require.Equal(t, "REDACTED REDACTED", s.Clean(text+"-of-another-issuer "+text))
}

// TestAShortSecretKeepsTheText hides a short secret as a whole word, and none that is shorter than four bytes.
func TestAShortSecretKeepsTheText(t *testing.T) {
	const said = "a pod is bypassed; pass it, \"pass\" or pass=passé"
	for token, want := range map[string]string{"a": said, "it": said, "pod": said, "pass": "a pod is bypassed; REDACTED it, \"REDACTED\" or REDACTED=passé"} {
		require.Equal(t, want, sent(token, "").Clean(said), token)
		require.Equal(t, want, sent("", token).Clean(said), token)
	}
	basic := base64.StdEncoding.EncodeToString([]byte("joe:p"))
	require.Equal(t, "Basic REDACTED", sent("", "p").Clean("Basic "+basic), "the header is hidden")
}

// TestABeginningIsRemoved cuts a text in a secret. Eight bytes are removed anywhere, and four at the end.
func TestABeginningIsRemoved(t *testing.T) {
	s := sent(text, "")
	require.Equal(t, "a REDACTED b", s.Clean("a "+text[:8]+" b"))
	require.Equal(t, "a "+text[:7]+" b", s.Clean("a "+text[:7]+" b"))
	require.Equal(t, "a REDACTED", string(s.CleanBody([]byte("a "+text[:4]))))
	require.Equal(t, "a "+text[:3], string(s.CleanBody([]byte("a "+text[:3]))))
	require.Equal(t, "a REDACTED…", s.CleanCut("a "+text[:4]+"…"))
	require.Equal(t, "a "+text[:4], s.CleanCut("a "+text[:4]))
}

func TestCleanedErrors(t *testing.T) {
	s := sent(text, "")
	plain := errors.New("no credential")
	require.Same(t, plain, s.CleanError(plain, nil))
	require.NoError(t, s.CleanError(nil, nil))

	leaking := fmt.Errorf("send %s: %w, %w", text, io.ErrUnexpectedEOF, &fs.PathError{Op: "open", Path: text, Err: fs.ErrNotExist})
	kept := &fs.PathError{Op: "open", Path: "/", Err: fs.ErrInvalid}
	for _, below := range []error{nil, kept} {
		err := s.CleanError(leaking, below)
		require.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), text)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.ErrorIs(t, err, fs.ErrNotExist)
		var path *fs.PathError
		require.Equal(t, below != nil, errors.As(err, &path))
		require.True(t, below == nil || path == kept)
	}
}

func TestOldTokensAreForgotten(t *testing.T) {
	s := &secret.Sent{}
	for i := range 100 {
		for range 2 {
			s.AddToken(secret.New(fmt.Sprintf("%03d-is-a-token", i)))
		}
	}
	require.Equal(t, 16, s.Tokens())
	require.Equal(t, "083-is-a-token REDACTED", s.Clean("083-is-a-token 084-is-a-token"))
	s.AddToken(secret.New("084-is-a-token"))
	require.Equal(t, 16, s.Tokens(), "a known token becomes the newest")
	s.AddToken(secret.New("another token"))
	require.Equal(t, "REDACTED", s.Clean("084-is-a-token"))
}

func TestQuote(t *testing.T) {
	s := sent(text, "")
	for body, want := range map[string]string{
		"two\n\tlines \x1b[1m":               "two lines [1m",
		"<!DOCTYPE html><title>A b</title>":  `a page of HTML titled "A b"`,
		"<!doctype html>":                    "a page of HTML",
		`{"kind":"Secret","data":{"a":"b"}}`: "an object of Kubernetes, which is not shown",
		"k8s\x00\x0a":                        "an object of Kubernetes, which is not shown",
		"token " + text:                      "token REDACTED",
		"token " + text[:5]:                  "token REDACTED",
		"<!doctype html><title>İ</title>":    "a page of HTML",
		"<!doctype html></title>x<title>":    "a page of HTML",
		"":                                   "",
	} {
		require.Equal(t, want, s.Quote("text/plain", []byte(body)))
	}
	require.Equal(t, `a page of HTML titled "x"`, s.Quote("text/html; charset=utf-8", []byte("<b><title> x</title>")))
}

// FuzzQuote quotes arbitrary answers that end with a secret, or with its beginning.
func FuzzQuote(f *testing.F) {
	f.Add("text/html", []byte("<title>"), 12)
	f.Add("", []byte("\xff"), 5)
	s := sent(text, "")
	f.Fuzz(func(t *testing.T, contentType string, body []byte, n int) {
		n = min(max(4, n), len(text))
		quoted := s.Quote(contentType, append(body, text[:n]...))
		require.LessOrEqual(t, len(quoted), 256)
		require.True(t, utf8.ValidString(quoted))
		require.NotContains(t, quoted, "\n")
		require.NotContains(t, quoted, text)
	})
}
