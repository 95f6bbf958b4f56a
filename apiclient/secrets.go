package apiclient

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxSent is the number of tokens that are remembered. A client has few at a time, but an answer may quote an older
// one.
const maxSent = 16

const (
	shortestPart = 8 // bytes at the beginning of a secret that are hidden anywhere in a text
	shortestEnd  = 4 // bytes at the beginning of a secret that are hidden at the end of a text that may have been cut
)

// sentSecrets has the credentials of requests, so that errors do not quote them if a server or a proxy echoes them.
type sentSecrets struct {
	mu     sync.Mutex // guards the fields below
	tokens []Secret   // the newest last
	others []string   // passwords, also of proxies, plain and encoded for basic authentication
}

// addToken remembers a token. For the newest token it costs a comparison.
func (s *sentSecrets) addToken(t Secret) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.tokens); n > 0 && s.tokens[n-1] == t {
		return
	}
	s.tokens = slices.DeleteFunc(s.tokens, func(o Secret) bool { return o.Reveal() == t.Reveal() })
	s.tokens = append(s.tokens, t)
	if len(s.tokens) > maxSent {
		s.tokens = slices.Delete(s.tokens, 0, 1)
	}
}

// addPassword remembers a password and its encoding in basic authentication.
func (s *sentSecrets) addPassword(user, password string) {
	if password == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	basic := basicAuth(user, password)
	if slices.Contains(s.others, basic) {
		return
	}
	s.others = append(s.others, basic, password)
}

func basicAuth(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
}

// clean removes credentials from a text, in every form: plain, and encoded for HTML, a URL, JSON or Go.
func (s *sentSecrets) clean(text string) string {
	all := s.all()
	for _, secret := range all {
		text = hide(text, secret)
	}
	return hideParts(text, all)
}

// cleanBody is clean for the beginning of a body, which may end inside a secret. It must run before the text is cut or
// joined, because a part of a secret may not be recognised later.
func (s *sentSecrets) cleanBody(body []byte) []byte {
	text := strings.TrimSpace(s.clean(string(body)))
	for _, secret := range s.all() {
		for n := min(len(secret)-1, len(text)); n >= shortestEnd; n-- {
			if strings.HasSuffix(text, secret[:n]) {
				text = text[:len(text)-n] + redacted
				break
			}
		}
	}
	return []byte(text)
}

// cleanCut is clean for a text that may have been cut and then ends with an ellipsis.
func (s *sentSecrets) cleanCut(text string) string {
	if beginning, cut := strings.CutSuffix(text, "…"); cut {
		return string(s.cleanBody([]byte(beginning))) + "…"
	}
	return s.clean(text)
}

// all returns the credentials, the longest first. If two begin alike, the longer one must be removed whole.
func (s *sentSecrets) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.others)
	for _, t := range s.tokens {
		all = append(all, t.Reveal())
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}

func hide(text, secret string) string {
	quoted, _ := json.Marshal(secret) // a string can always be marshalled
	goQuoted := strconv.Quote(secret)
	forms := []string{
		secret, html.EscapeString(secret), url.QueryEscape(secret), url.PathEscape(secret), string(quoted[1 : len(quoted)-1]),
		goQuoted[1 : len(goQuoted)-1],
	}
	for _, form := range forms {
		text = strings.ReplaceAll(text, form, redacted)
	}
	return text
}

// hideParts removes the beginnings of secrets that were cut. Tokens of one issuer begin alike, so the longest match is
// removed.
func hideParts(text string, secrets []string) string {
	var b strings.Builder
	for text != "" {
		n := 0
		for _, secret := range secrets {
			n = max(n, commonPrefix(text, secret))
		}
		if n >= shortestPart {
			b.WriteString(redacted)
		} else {
			n = 1
			b.WriteByte(text[0])
		}
		text = text[n:]
	}
	return b.String()
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// cleanStatus removes credentials from a Status, because the error page of a proxy may quote the request.
func (s *sentSecrets) cleanStatus(status *metav1.Status) {
	status.Message = s.cleanCut(status.Message)
	status.Reason = metav1.StatusReason(s.clean(string(status.Reason)))
	if status.Details == nil {
		return
	}
	status.Details.Name = s.clean(status.Details.Name)
	for i := range status.Details.Causes {
		c := &status.Details.Causes[i]
		c.Message, c.Field = s.clean(c.Message), s.clean(c.Field)
	}
}

// cleanError removes credentials from an error, because net/http quotes invalid answers.
func (s *sentSecrets) cleanError(err error) error {
	if err == nil {
		return nil
	}
	var (
		page     *ContentTypeError
		redirect *RedirectError
		status   *apierrors.StatusError
	)
	switch {
	case errors.As(err, &page):
		page.ContentType, page.Body = s.clean(page.ContentType), s.clean(page.Body)
	case errors.As(err, &redirect):
		redirect.To = s.clean(redirect.To)
	case errors.As(err, &status): // an event of a watch
		s.cleanStatus(&status.ErrStatus)
	}
	text := err.Error()
	if clean := s.clean(text); clean != text {
		return &cleanedError{text: clean, is: func(target error) bool { return errors.Is(err, target) }, status: status}
	}
	return err
}

// cleanedError is an error whose text was changed. errors.Is still recognises the original error, but errors.As does
// not return it, because it has the credential. A Status is the exception: it is cleaned too, because callers need its
// reason. The original error is inside a function, so that fmt does not print it.
type cleanedError struct {
	text   string
	is     func(error) bool
	status *apierrors.StatusError // may be nil
}

// Error returns the text without credentials.
func (e *cleanedError) Error() string { return e.text }

// Is reports whether the original error matches target.
func (e *cleanedError) Is(target error) bool { return e.is(target) }

// Unwrap returns the Status.
func (e *cleanedError) Unwrap() error {
	if e.status == nil {
		return nil
	}
	return e.status
}
