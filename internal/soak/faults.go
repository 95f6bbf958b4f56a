package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leatproject/leat/testserver/faultplan"
	"github.com/leatproject/leat/testserver/faults"
)

// undetected are the effects that a client cannot notice: only a new list shows what they hid.
var undetected = []string{"drop", "hold", "malform"}

// texts are the faults, in the form of package faultplan. An answer that is wrong would make a writer believe that it
// had written, so such faults affect reads only.
var texts = []string{
	"get,list,watch: fail 500 times=2", "get,list,watch: fail 503 times=4 retry-after=1s", "get,list,watch: fail 504 times=1",
	"get,list,watch: fail 429 times=3", "get,list,watch: fail 403 times=2", "get,list,watch: fail 401 times=1",
	"get,list,watch: fail 404 times=2", "get,list,watch: fail 502 times=3 retry-after=1s",
	"fail 429 times=4 retry-after=1s", // a busy server
	`get,list,watch: fail 200 body="{\"kind\":\"MillList\",\"items\":[{" times=2`,
	"delay 500ms times=3", "delay 50ms times=3", "stall times=1", "stall 1500 times=1", "reset times=3",
	"cut 100 times=1", "cut 4000 times=2", "cut 700 abrupt times=3", "cut-frame 0 times=1", "cut-frame 150 abrupt times=1",
	"short-watch 0s times=4", "short-watch 200ms abrupt times=4", "end-watch 410 times=2", "refuse-watchlist",
	"duplicate times=9", "stall-events times=1", "disconnect", "disconnect abrupt", "compact",
	"drop times=3", "hold times=1", "hold 3 times=3", "list,watch: malform times=5",
}

// kinds are the faults by the name of their effect.
func kinds() (map[string][]faults.Fault, error) {
	all := map[string][]faults.Fault{}
	for _, text := range texts {
		f, err := faultplan.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("soak: %w", err)
		}
		_, effect, found := strings.Cut(text, ": ")
		if !found {
			effect = text
		}
		name := strings.Fields(effect)[0]
		all[name] = append(all[name], f.Fault)
	}
	return all, nil
}

// outage is a fault that ends by itself.
const outage = "outage"

// tally counts by name.
type tally map[string]int

func (t tally) add(other tally) {
	for name, n := range other {
		t[name] += n
	}
}

func (t tally) total() (n int) {
	for _, count := range t {
		n += count
	}
	return n
}

// String is "cut answer 2, reset 5", in the order of names.
func (t tally) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if t[name] > 0 {
			all = append(all, fmt.Sprintf("%s %d", name, t[name]))
		}
	}
	return strings.Join(all, ", ")
}
