package secret

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"html"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// maxSent is the number of tokens that are remembered. A client has few at a time, but an answer may quote an older
// one.
const maxSent = 16

const (
	// shortestSecret is the length of the shortest secret that is hidden, in bytes. A shorter one is found by trying,
	// and its letters are in every word: an error would say nothing. The header with it is hidden as a whole.
	shortestSecret = 4
	shortestPart   = 8 // bytes at the beginning of a secret that are hidden anywhere in a text
	shortestEnd    = 4 // bytes at the beginning of a secret that are hidden at the end of a text that may have been cut
)

// Sent has the credentials that were sent, so that errors do not quote them if a server or a proxy echoes them.
type Sent struct {
	mu     sync.Mutex // guards the fields below
	tokens []Secret   // the newest last
	others []string   // passwords, also of proxies, plain and encoded for basic authentication
}

// AddToken remembers a token. For the newest token it costs a comparison.
func (s *Sent) AddToken(t Secret) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.tokens); t.IsZero() || n > 0 && s.tokens[n-1] == t {
		return
	}
	s.tokens = slices.DeleteFunc(s.tokens, func(o Secret) bool { return o.Reveal() == t.Reveal() })
	s.tokens = append(s.tokens, t)
	if len(s.tokens) > maxSent {
		s.tokens = slices.Delete(s.tokens, 0, 1)
	}
}

// AddPassword remembers a password and its encoding in basic authentication, which it returns.
func (s *Sent) AddPassword(user, password string) (basic string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	basic = base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	if password != "" && !slices.Contains(s.others, basic) {
		s.others = append(s.others, basic, password)
	}
	return basic
}

// Tokens returns the number of tokens that are remembered.
func (s *Sent) Tokens() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tokens)
}

// Clean removes credentials from a text, in every form: plain, and encoded for HTML, a URL, JSON or Go.
func (s *Sent) Clean(text string) string {
	all := s.all()
	for _, secret := range all {
		text = hide(text, secret)
	}
	return hideParts(text, all)
}

// CleanBody is Clean for the beginning of a body, which may end inside a secret. It must run before the text is cut or
// joined, because a part of a secret may not be recognised later.
func (s *Sent) CleanBody(body []byte) []byte {
	text := strings.TrimSpace(s.Clean(string(body)))
	for _, secret := range s.all() {
		for n := min(len(secret)-1, len(text)); n >= shortestEnd; n-- {
			if strings.HasSuffix(text, secret[:n]) {
				text = text[:len(text)-n] + Redacted
				break
			}
		}
	}
	return []byte(text)
}

// CleanCut is Clean for a text that may have been cut and then ends with an ellipsis.
func (s *Sent) CleanCut(text string) string {
	if beginning, cut := strings.CutSuffix(text, "…"); cut {
		return string(s.CleanBody([]byte(beginning))) + "…"
	}
	return s.Clean(text)
}

// all returns the credentials, the longest first. If two begin alike, the longer one must be removed whole.
func (s *Sent) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.others)
	for _, t := range s.tokens {
		all = append(all, t.Reveal())
	}
	all = slices.DeleteFunc(all, func(secret string) bool { return len(secret) < shortestSecret })
	sort.Slice(all, func(i, j int) bool { return len(all[i]) > len(all[j]) }) // adds 8 KB less to a program than slices.SortFunc
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
		if len(secret) >= shortestPart {
			text = strings.ReplaceAll(text, form, Redacted)
		} else {
			text = replaceWord(text, form)
		}
	}
	return text
}

// replaceWord hides a short secret where it is not a part of a word, because "pass" is a part of "bypassed".
func replaceWord(text, word string) string {
	var b strings.Builder
	for done := 0; ; {
		at := strings.Index(text[done:], word)
		if at < 0 {
			return b.String() + text[done:]
		}
		from, to := done+at, done+at+len(word)
		before, _ := utf8.DecodeLastRuneInString(text[:from])
		after, _ := utf8.DecodeRuneInString(text[to:])
		if isWord(before) || isWord(after) {
			_, n := utf8.DecodeRuneInString(text[from:])
			b.WriteString(text[done : from+n])
			done = from + n
			continue
		}
		b.WriteString(text[done:from] + Redacted)
		done = to
	}
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

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
			b.WriteString(Redacted)
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

// CleanError removes credentials from the text of an error, because net/http quotes invalid answers. kept is an error
// below err whose text has no credential; the result wraps it. It may be nil.
func (s *Sent) CleanError(err, kept error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if clean := s.Clean(text); clean != text {
		return &cleanedError{text: clean, is: func(target error) bool { return errors.Is(err, target) }, kept: kept}
	}
	return err
}

// cleanedError is an error whose text was changed. errors.Is still recognises the original error, but errors.As does
// not return it, because it has the credential. The original error is inside a function, so that fmt does not print it.
type cleanedError struct {
	text string
	is   func(error) bool
	kept error // may be nil
}

// Error returns the text without credentials.
func (e *cleanedError) Error() string { return e.text }

// Is reports whether the original error matches target.
func (e *cleanedError) Is(target error) bool { return e.is(target) }

// Unwrap returns the error that was kept.
func (e *cleanedError) Unwrap() error { return e.kept }
