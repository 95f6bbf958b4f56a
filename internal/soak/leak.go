package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
)

// leaker forgets something in every round, to show that the soak notices it.
type leaker struct {
	o     *observer
	heap  [][]byte
	files []*os.File
}

// leaks are what a leaker may forget, each about as much as one forgotten thing of its kind is.
var leaks = map[string]func(*leaker) error{
	"goroutine": func(*leaker) error {
		go func() { select {} }()
		return nil
	},
	"memory": func(l *leaker) error {
		l.heap = append(l.heap, make([]byte, 128<<10))
		return nil
	},
	"descriptor": func(l *leaker) error {
		f, err := os.Open(os.DevNull)
		l.files = append(l.files, f)
		return err
	},
	"registration": func(l *leaker) error {
		_, err := l.o.mills.Subscribe(func(api.Change[*mill]) {}, informer.HandlerOptions{})
		return err
	},
	"share": func(l *leaker) error {
		_, err := newVisitors(l.o, newRand(0)).share()
		return err
	},
}

func leakNames() string { return strings.Join(slices.Sorted(maps.Keys(leaks)), ", ") }

// leak forgets something of a kind; "" is nothing.
func (l *leaker) leak(kind string) error {
	if kind == "" {
		return nil
	}
	f, known := leaks[kind]
	if !known {
		return fmt.Errorf("soak: -leak is one of %s", leakNames())
	}
	return f(l)
}
