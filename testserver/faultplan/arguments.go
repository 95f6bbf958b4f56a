package faultplan

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// arguments are words: those of a selection, or those behind an effect. Each method takes what it returns out of them.
type arguments struct {
	of       string   // the effect
	words    []string // with their quotes
	named    map[string]string
	snapshot string
	err      error // the first error
}

func newArguments(of string, words []string) *arguments {
	a := &arguments{of: of, named: map[string]string{}}
	for _, word := range words {
		name, value, named := strings.Cut(word, "=")
		if !named || strings.HasPrefix(word, `"`) {
			a.words = append(a.words, word)
			continue
		}
		if _, repeated := a.named[name]; repeated {
			a.fail("%s= is repeated", name)
		}
		if a.named[name] = a.unquote(value); a.named[name] == "" {
			a.fail("%s= has no value", name)
		}
	}
	return a
}

// fail notes the first error.
func (a *arguments) fail(format string, args ...any) {
	if a.err == nil {
		a.err = fmt.Errorf(format, args...)
	}
}

// unquote returns a value without its double quotes, if it has some.
func (a *arguments) unquote(value string) string {
	if !strings.Contains(value, `"`) {
		return value
	}
	text, err := strconv.Unquote(value)
	if err != nil || value[0] != '"' {
		a.fail("%s is not a text in double quotes", value)
	}
	return text
}

// end returns the first error, which is that of an argument that nothing has taken if there is no other.
func (a *arguments) end() error {
	for _, word := range a.words {
		a.fail("%s does not take %q", a.of, word)
	}
	for _, name := range slices.Sorted(maps.Keys(a.named)) {
		a.fail("%s does not take %s=", a.of, name)
	}
	return a.err
}

// next takes the first word, or "".
func (a *arguments) next() string {
	if len(a.words) == 0 {
		return ""
	}
	word := a.words[0]
	a.words = a.words[1:]
	return a.unquote(word)
}

// word takes a word if it is there.
func (a *arguments) word(word string) bool {
	i := slices.Index(a.words, word)
	if i >= 0 {
		a.words = slices.Delete(a.words, i, i+1)
	}
	return i >= 0
}

// text takes a named value.
func (a *arguments) text(name string) string {
	value := a.named[name]
	delete(a.named, name)
	return value
}

// value parses a text. If it has no good value, the error is what format says about the text.
func value[T any](a *arguments, text string, parse func(string) (T, error), good func(T) bool, format string) T {
	v, err := parse(text)
	if err != nil || !good(v) {
		a.fail(format, text)
	}
	return v
}

// number takes a number of bytes or frames.
func (a *arguments) number(optional bool) int {
	if optional && len(a.words) == 0 {
		return 0
	}
	return value(a, a.next(), strconv.Atoi, func(n int) bool { return n >= 0 }, a.of+" needs a number that is not negative, and has %q")
}

// duration takes a duration.
func (a *arguments) duration() time.Duration {
	return value(a, a.next(), time.ParseDuration, func(d time.Duration) bool { return d >= 0 }, a.of+" needs a duration such as 500ms, and has %q")
}

// code takes the code of an answer, if there is a number.
func (a *arguments) code() int {
	if len(a.words) == 0 || a.words[0] == "abrupt" {
		return 0
	}
	return value(a, a.next(), strconv.Atoi, func(n int) bool { return n >= 200 && n <= 599 }, "%q is not a status code between 200 and 599")
}

// count takes a named number.
func (a *arguments) count(name string) int {
	if a.named[name] == "" {
		return 0
	}
	return value(a, a.text(name), strconv.Atoi, func(n int) bool { return n > 0 }, name+"=%s is not a number above 0")
}

// span takes a named duration.
func (a *arguments) span(name string) time.Duration {
	if a.named[name] == "" {
		return 0
	}
	return value(a, a.text(name), time.ParseDuration, func(d time.Duration) bool { return d > 0 }, name+"=%s is not a duration above 0, such as 5s")
}

// percent takes a probability.
func (a *arguments) percent() float64 {
	i := slices.IndexFunc(a.words, func(w string) bool { return strings.HasSuffix(w, "%") })
	if i < 0 {
		return 0
	}
	text := a.words[i]
	a.words = slices.Delete(a.words, i, i+1)
	millionths := func(text string) (float64, error) {
		p, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
		return math.Round(p * 1e4), err // rounded, so that the text of the fault is exact
	}
	return value(a, text, millionths, func(n float64) bool { return n >= 1 && n <= 1e6 }, "%q is not a probability between 0.0001%% and 100%%") / 1e6
}

// status takes a code and a message for an ERROR event, if there is a code.
func (a *arguments) status() *metav1.Status {
	code := a.code()
	if code == 0 {
		return nil
	}
	s := &metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Message: a.text("message"), Reason: reasons[code]}
	if s.Message == "" {
		s.Message = "a fault was injected"
	}
	return s
}

// reasons are those of the errors that end watches.
var reasons = map[int]metav1.StatusReason{
	http.StatusGone:                metav1.StatusReasonExpired,
	http.StatusUnauthorized:        metav1.StatusReasonUnauthorized,
	http.StatusForbidden:           metav1.StatusReasonForbidden,
	http.StatusTooManyRequests:     metav1.StatusReasonTooManyRequests,
	http.StatusInternalServerError: metav1.StatusReasonInternalError,
	http.StatusServiceUnavailable:  metav1.StatusReasonServiceUnavailable,
	http.StatusGatewayTimeout:      metav1.StatusReasonTimeout,
}
