package faultplan

import (
	"errors"
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

// arguments are the words behind an effect. Each method takes what it returns out of them; end reports the rest.
type arguments struct {
	of       string // the effect
	words    []string
	named    map[string]string
	snapshot string
	err      error // the first error
}

func newArguments(of string, words []string) *arguments {
	a := &arguments{of: of, named: map[string]string{}}
	for _, word := range words {
		name, value, named := strings.Cut(word, "=")
		if !named || strings.HasPrefix(word, `"`) {
			text, err := unquote(word)
			a.fail(err)
			a.words = append(a.words, text)
			continue
		}
		if _, repeated := a.named[name]; repeated {
			a.fail(fmt.Errorf("%s= is repeated", name))
		}
		text, err := unquote(value)
		a.fail(err)
		a.named[name] = text
	}
	return a
}

func (a *arguments) fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

// end returns the first error, which is that of an argument that nothing has taken if there is no other.
func (a *arguments) end() error {
	for _, word := range a.words {
		a.fail(fmt.Errorf("%s does not take %q", a.of, word))
	}
	for _, name := range slices.Sorted(maps.Keys(a.named)) {
		a.fail(fmt.Errorf("%s does not take %s=", a.of, name))
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
	return word
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
	value, given := a.named[name]
	delete(a.named, name)
	if given && value == "" {
		a.fail(fmt.Errorf("%s= has no value", name))
	}
	return value
}

// number takes a number of bytes or frames.
func (a *arguments) number(optional bool) int {
	if optional && len(a.words) == 0 {
		return 0
	}
	word := a.next()
	n, err := strconv.Atoi(word)
	if err != nil || n < 0 {
		a.fail(fmt.Errorf("%s needs a number that is not negative, and has %q", a.of, word))
	}
	return n
}

// duration takes a duration.
func (a *arguments) duration() time.Duration {
	word := a.next()
	d, err := time.ParseDuration(word)
	if err != nil || d < 0 {
		a.fail(fmt.Errorf("%s needs a duration such as 500ms, and has %q", a.of, word))
	}
	return d
}

// code takes the code of an answer, if there is a number.
func (a *arguments) code() int {
	if len(a.words) == 0 || a.words[0] == "abrupt" {
		return 0
	}
	word := a.next()
	code, err := strconv.Atoi(word)
	if err != nil || code < 200 || code > 599 {
		a.fail(fmt.Errorf("%q is not a status code between 200 and 599", word))
	}
	return code
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

// percent takes a probability.
func (a *arguments) percent() float64 {
	i := slices.IndexFunc(a.words, func(w string) bool { return strings.HasSuffix(w, "%") })
	if i < 0 {
		return 0
	}
	p, err := strconv.ParseFloat(strings.TrimSuffix(a.words[i], "%"), 64)
	millionths := math.Round(p * 1e4) // rounded, so that the text of the fault is exact
	if err != nil || !(millionths >= 1 && p <= 100) {
		a.fail(fmt.Errorf("%q is not a probability between 0.0001%% and 100%%", a.words[i]))
	}
	a.words = slices.Delete(a.words, i, i+1)
	return millionths / 1e6
}

// count takes a named number.
func (a *arguments) count(name string) int {
	text, given := a.named[name]
	delete(a.named, name)
	n, err := strconv.Atoi(text)
	if given && (err != nil || n < 1) {
		a.fail(fmt.Errorf("%s=%s is not a number above 0", name, text))
	}
	return n
}

// span takes a named duration.
func (a *arguments) span(name string) time.Duration {
	text, given := a.named[name]
	delete(a.named, name)
	d, err := time.ParseDuration(text)
	if given && (err != nil || d <= 0) {
		a.fail(errors.New(name + "=" + text + " is not a duration above 0, such as 5s"))
	}
	return d
}
