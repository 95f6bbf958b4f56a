package faultplan

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/testserver/faults"
)

// scope is what an effect affects.
type scope int

const (
	requests scope = iota
	watches        // open watches
	frames         // frames of watches
	always         // the whole server
)

// kind is the text form of one type of effects.
type kind struct {
	name    string
	is      faults.Effect
	scope   scope
	items   bool // frames may be items of lists
	instant bool // happens once, when it is injected
	read    func(*arguments) faults.Effect
	print   func(Fault) []string
}

// kinds are the effects with their arguments: those in capitals come first, and those in brackets may be missing.
var kinds = []kind{
	{
		name: "fail", is: faults.Fail{}, // CODE [message=] [reason=] [retry-after=] [body=] [header=NAME:VALUE]
		read: readFail, print: printFail,
	},
	{
		name: "delay", is: faults.Delay{}, // DURATION
		read:  func(a *arguments) faults.Effect { return faults.Delay{For: a.duration()} },
		print: func(f Fault) []string { return []string{f.Effect.(faults.Delay).For.String()} },
	},
	{
		name: "stall", is: faults.Stall{}, // [BYTES]
		read:  func(a *arguments) faults.Effect { return faults.Stall{After: a.number(true)} },
		print: func(f Fault) []string { return nonzero(f.Effect.(faults.Stall).After) },
	},
	{name: "reset", is: faults.Reset{}},
	{
		name: "cut", is: faults.Cut{}, // BYTES [abrupt]
		read: func(a *arguments) faults.Effect { return faults.Cut{After: a.number(false), Abrupt: a.word("abrupt")} },
		print: func(f Fault) []string {
			e := f.Effect.(faults.Cut)
			return abrupt(e.Abrupt, strconv.Itoa(e.After))
		},
	},
	{
		name: "stale", is: faults.Stale{}, // [SNAPSHOT]
		read:  func(a *arguments) faults.Effect { a.snapshot = a.next(); return faults.Stale{} },
		print: snapshot,
	},
	{name: "refuse-watchlist", is: faults.RefuseWatchList{}},
	{name: "ignore-limit", is: faults.IgnoreLimit{}},
	{name: "endless-list", is: faults.EndlessList{}},
	{
		name: "short-watch", is: faults.ShortWatch{}, // DURATION [abrupt]
		read: func(a *arguments) faults.Effect {
			return faults.ShortWatch{For: a.duration(), Abrupt: a.word("abrupt")}
		},
		print: func(f Fault) []string {
			e := f.Effect.(faults.ShortWatch)
			return abrupt(e.Abrupt, e.For.String())
		},
	},
	{name: "drop", is: faults.Drop{}, scope: frames, items: true},
	{name: "duplicate", is: faults.Duplicate{}, scope: frames, items: true},
	{
		name: "hold", is: faults.Hold{}, scope: frames, // [FRAMES]
		read:  func(a *arguments) faults.Effect { return faults.Hold{Frames: a.number(true)} },
		print: func(f Fault) []string { return nonzero(f.Effect.(faults.Hold).Frames) },
	},
	{name: "malform", is: faults.Malform{}, scope: frames, items: true},
	{
		name: "cut-frame", is: faults.CutFrame{}, scope: frames, // BYTES [abrupt]
		read: func(a *arguments) faults.Effect {
			return faults.CutFrame{At: a.number(false), Abrupt: a.word("abrupt")}
		},
		print: func(f Fault) []string {
			e := f.Effect.(faults.CutFrame)
			return abrupt(e.Abrupt, strconv.Itoa(e.At))
		},
	},
	{
		name: "end-watch", is: faults.EndWatch{}, scope: frames, // [CODE] [message=] [abrupt]
		read: func(a *arguments) faults.Effect {
			return faults.EndWatch{Error: a.status(), Abrupt: a.word("abrupt")}
		},
		print: func(f Fault) []string {
			e := f.Effect.(faults.EndWatch)
			return abrupt(e.Abrupt, statusWords(e.Error)...)
		},
	},
	{name: "stall-events", is: faults.StallEvents{}, scope: frames},
	{
		name: "disconnect", is: faults.Disconnect{}, scope: watches, instant: true, // [CODE] [message=] [abrupt]
		read: func(a *arguments) faults.Effect {
			return faults.Disconnect{Error: a.status(), Abrupt: a.word("abrupt")}
		},
		print: func(f Fault) []string {
			e := f.Effect.(faults.Disconnect)
			return abrupt(e.Abrupt, statusWords(e.Error)...)
		},
	},
	{name: "compact", is: faults.Compact{}, scope: always, instant: true},
	{
		name: "restore", is: faults.Restore{}, scope: always, instant: true, // SNAPSHOT
		read: func(a *arguments) faults.Effect {
			if a.snapshot = a.next(); a.snapshot == "" {
				a.fail(errors.New("restore needs the name of a snapshot"))
			}
			return faults.Restore{}
		},
		print: snapshot,
	},
	{name: "outage", is: faults.Outage{}, scope: always},
}

// kindOf returns the text form of an effect.
func kindOf(e faults.Effect) kind {
	for _, k := range kinds {
		if reflect.TypeOf(k.is) == reflect.TypeOf(e) {
			if k.print == nil {
				k.print = func(Fault) []string { return nil }
			}
			return k
		}
	}
	panic(fmt.Sprintf("faultplan: %T has no text", e))
}

// parseEffect reads the part of a fault behind the colon.
func (f *Fault) parseEffect(words []string) error {
	if len(words) == 0 {
		return fmt.Errorf("the effect is missing; it is one of %s", names())
	}
	at := slices.IndexFunc(kinds, func(k kind) bool { return k.name == words[0] })
	if at < 0 {
		return fmt.Errorf("%q is not an effect; they are %s", words[0], names())
	}
	a := newArguments(words[0], words[1:])
	f.Probability = a.percent()
	f.Skip, f.Times = a.count("skip"), a.count("times")
	f.After, f.For, f.Every = a.span("after"), a.span("for"), a.span("every")
	f.Effect = kinds[at].is
	if kinds[at].read != nil {
		f.Effect = kinds[at].read(a)
	}
	f.Snapshot = a.snapshot
	return a.end()
}

func names() string {
	var all []string
	for _, k := range kinds {
		all = append(all, k.name)
	}
	return strings.Join(all, ", ")
}

func readFail(a *arguments) faults.Effect {
	e := faults.Fail{Code: a.code(), Message: a.text("message"), Reason: metav1.StatusReason(a.text("reason"))}
	if e.Code == 0 {
		a.fail(errors.New("fail needs a status code, such as 503"))
	}
	if e.RetryAfter = a.span("retry-after"); e.RetryAfter%time.Second != 0 {
		a.fail(errors.New("retry-after= is in whole seconds"))
	}
	if body := a.text("body"); body != "" {
		e.Body = []byte(body)
	}
	if header := a.text("header"); header != "" {
		name, value, ok := strings.Cut(header, ":")
		if name = http.CanonicalHeaderKey(strings.TrimSpace(name)); !ok || name == "" {
			a.fail(fmt.Errorf("header=%q is not NAME:VALUE", header))
		}
		e.Header = http.Header{name: {strings.TrimSpace(value)}}
	}
	return e
}

func printFail(f Fault) []string {
	e := f.Effect.(faults.Fail)
	words := []string{strconv.Itoa(e.Code)}
	for _, named := range [][2]string{{"message", e.Message}, {"reason", string(e.Reason)}, {"body", string(e.Body)}} {
		if named[1] != "" {
			words = append(words, named[0]+"="+quote(named[1]))
		}
	}
	if e.RetryAfter > 0 {
		words = append(words, "retry-after="+e.RetryAfter.String())
	}
	for name, values := range e.Header {
		words = append(words, "header="+quote(name+":"+strings.Join(values, ",")))
	}
	return words
}

func statusWords(s *metav1.Status) []string {
	if s == nil {
		return nil
	}
	return []string{strconv.Itoa(int(s.Code)), "message=" + quote(s.Message)}
}

func snapshot(f Fault) []string {
	if f.Snapshot == "" {
		return nil
	}
	return []string{quote(f.Snapshot)}
}

func nonzero(n int) []string {
	if n == 0 {
		return nil
	}
	return []string{strconv.Itoa(n)}
}

func abrupt(yes bool, words ...string) []string {
	if yes {
		return append(words, "abrupt")
	}
	return words
}
