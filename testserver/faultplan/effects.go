package faultplan

import (
	"fmt"
	"net/http"
	"slices"
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
	scope   scope
	items   bool // frames may be items of lists
	instant bool // happens once, when it is injected
	read    func(*arguments) faults.Effect
}

// kinds are the effects with their arguments: those in capitals come first, and those in brackets may be missing.
var kinds = []kind{
	{name: "fail", read: readFail}, // CODE [message=] [reason=] [retry-after=] [body=] [header=NAME:VALUE]
	{name: "delay", read: func(a *arguments) faults.Effect { return faults.Delay{For: a.duration()} }},     // DURATION
	{name: "stall", read: func(a *arguments) faults.Effect { return faults.Stall{After: a.number(true)} }}, // [BYTES]
	{name: "reset", read: plain(faults.Reset{})},
	{name: "cut", read: func(a *arguments) faults.Effect { // BYTES [abrupt]
		return faults.Cut{After: a.number(false), Abrupt: a.word("abrupt")}
	}},
	{name: "stale", read: func(a *arguments) faults.Effect { // [SNAPSHOT]
		a.snapshot = a.next()
		return faults.Stale{}
	}},
	{name: "refuse-watchlist", read: plain(faults.RefuseWatchList{})},
	{name: "ignore-limit", read: plain(faults.IgnoreLimit{})},
	{name: "endless-list", read: plain(faults.EndlessList{})},
	{name: "short-watch", read: func(a *arguments) faults.Effect { // DURATION [abrupt]
		return faults.ShortWatch{For: a.duration(), Abrupt: a.word("abrupt")}
	}},
	{name: "drop", scope: frames, items: true, read: plain(faults.Drop{})},
	{name: "duplicate", scope: frames, items: true, read: plain(faults.Duplicate{})},
	{name: "hold", scope: frames, read: func(a *arguments) faults.Effect { return faults.Hold{Frames: a.number(true)} }}, // [FRAMES]
	{name: "malform", scope: frames, items: true, read: plain(faults.Malform{})},
	{name: "cut-frame", scope: frames, read: func(a *arguments) faults.Effect { // BYTES [abrupt]
		return faults.CutFrame{At: a.number(false), Abrupt: a.word("abrupt")}
	}},
	{name: "end-watch", scope: frames, read: func(a *arguments) faults.Effect { // [CODE] [message=] [abrupt]
		return faults.EndWatch{Error: a.status(), Abrupt: a.word("abrupt")}
	}},
	{name: "stall-events", scope: frames, read: plain(faults.StallEvents{})},
	{name: "disconnect", scope: watches, instant: true, read: func(a *arguments) faults.Effect { // [CODE] [message=] [abrupt]
		return faults.Disconnect{Error: a.status(), Abrupt: a.word("abrupt")}
	}},
	{name: "compact", scope: always, instant: true, read: plain(faults.Compact{})},
	{name: "restore", scope: always, instant: true, read: func(a *arguments) faults.Effect { // SNAPSHOT
		if a.snapshot = a.next(); a.snapshot == "" {
			a.fail("restore needs the name of a snapshot")
		}
		return faults.Restore{}
	}},
	{name: "outage", scope: always, read: plain(faults.Outage{})},
}

// plain reads an effect without arguments.
func plain(e faults.Effect) func(*arguments) faults.Effect {
	return func(*arguments) faults.Effect { return e }
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
	f.Effect = kinds[at].read(a)
	f.Snapshot = a.snapshot
	if err := a.end(); err != nil {
		return err
	}
	return f.check(kinds[at])
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
		a.fail("fail needs a status code, such as 503")
	}
	if e.RetryAfter = a.span("retry-after"); e.RetryAfter%time.Second != 0 {
		a.fail("retry-after= is in whole seconds")
	}
	if body := a.text("body"); body != "" {
		e.Body = []byte(body)
	}
	if header := a.text("header"); header != "" {
		name, value, ok := strings.Cut(header, ":")
		if name = http.CanonicalHeaderKey(strings.TrimSpace(name)); !ok || name == "" {
			a.fail("header=%q is not NAME:VALUE", header)
		}
		e.Header = http.Header{name: {strings.TrimSpace(value)}}
	}
	return e
}
