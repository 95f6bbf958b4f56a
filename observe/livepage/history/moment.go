package history

import (
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/observe/recording"
)

// bins is the number of parts of the strip over the slider.
const bins = 240

// overview is what does not depend on the moment. Times are microseconds since 1970.
type overview struct {
	Name     string    `json:"name"`
	First    int64     `json:"first"`
	Last     int64     `json:"last"`
	Changes  int       `json:"changes"` // after the first lists
	Objects  int       `json:"objects"` // that the recording ever had
	Strip    []int     `json:"strip"`   // the changes in each part of the time
	Ended    bool      `json:"ended"`   // the recorder ended the file
	Problems []problem `json:"problems"`
	Notes    []string  `json:"notes"`
}

// problem is a part of the file that cannot be read. To is 0 at the end of the file.
type problem struct {
	From int64  `json:"from"`
	To   int64  `json:"to"`
	Text string `json:"text"`
}

func (p *Page) serveRecording(w http.ResponseWriter, _ *http.Request) {
	o := overview{
		Name: p.name, First: p.first, Last: p.last, Objects: len(p.keys), Strip: make([]int, bins),
		Ended: p.reader.Complete(), Problems: []problem{}, Notes: append([]string{}, p.timeline.Notes()...),
	}
	for _, c := range p.changes {
		if !c.Initial {
			o.Changes++
			o.Strip[min(bins-1, int((c.at-p.first)*bins/max(1, p.last-p.first)))]++
		}
	}
	for _, x := range p.reader.Problems() {
		shown := problem{Text: x.Error()}
		if !x.From.IsZero() {
			shown.From = x.From.UnixMicro()
		}
		if !x.To.IsZero() {
			shown.To = x.To.UnixMicro()
		}
		o.Problems = append(o.Problems, shown)
	}
	answer(w, http.StatusOK, o)
}

// state is what the client knew at a moment.
type state struct {
	At      int64         `json:"at"`
	Changes int           `json:"changes"` // so far, with the first lists
	Second  totals        `json:"second"`  // in the second before
	Total   totals        `json:"total"`   // since the beginning
	Scopes  []scopeState  `json:"scopes"`
	Latest  []shownChange `json:"latest"` // newest first
	Points  []point       `json:"points"` // of the charts
}

// totals are sums over all scopes.
type totals struct {
	Events   int   `json:"events"`
	Changes  int   `json:"changes"`
	Requests int   `json:"requests"`
	Failed   int   `json:"failed"`
	Bytes    int64 `json:"bytes"`
	Objects  int   `json:"objects"` // at the end of the time, not a sum
}

type scopeState struct {
	Name       string             `json:"name"`
	Resource   string             `json:"resource"` // to search for its objects
	Activity   recording.Activity `json:"activity"`
	Ended      string             `json:"ended"`   // how the last stream ended; empty while one is open
	Code       int                `json:"code"`    // of the last request if it was refused
	Started    bool               `json:"started"` // a request has begun
	Synced     bool               `json:"synced"`
	Objects    int                `json:"objects"`
	Version    string             `json:"version"`
	HeardAt    int64              `json:"heardAt"`
	Events     int                `json:"events"`
	Second     int                `json:"second"` // events in the second before
	Bookmarks  int                `json:"bookmarks"`
	Lists      int                `json:"lists"`
	WatchLists int                `json:"watchLists"`
	Watches    int                `json:"watches"`
	Failed     int                `json:"failed"`
	Bytes      int64              `json:"bytes"`
}

type shownChange struct {
	At       int64  `json:"at"`
	Type     string `json:"type"`
	Resource string `json:"resource"`
	Key      string `json:"key"`
	Version  string `json:"version"`
}

// point is the end of a part of a chart, with the rates in this part. A part may be before the recording.
type point struct {
	At      float64 `json:"at"` // seconds since 1970
	Events  float64 `json:"events"`
	Changes float64 `json:"changes"`
	Failed  float64 `json:"failed"`
	Bytes   float64 `json:"bytes"`
	Objects int     `json:"objects"`
}

const (
	second      = int64(time.Second / time.Microsecond)
	longWindow  = 300 * second // of the charts, as on the live page
	shortWindow = 2 * second
	points      = 100
	mostLatest  = 12
)

func (p *Page) serveState(w http.ResponseWriter, r *http.Request) {
	at, err := p.moment(r)
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	now := p.totals(at)
	s := state{At: at, Changes: now.Changes, Total: now, Second: now.since(p.totals(at - second)), Scopes: []scopeState{}, Latest: []shownChange{}}
	for _, sc := range p.scopes {
		s.Scopes = append(s.Scopes, sc.state(at))
	}
	for i := now.Changes - 1; i >= 0 && len(s.Latest) < mostLatest; i-- {
		s.Latest = append(s.Latest, p.changes[i].shown())
	}
	s.Points = p.points(at)
	answer(w, http.StatusOK, s)
}

// totals returns the sums from the beginning to a time.
func (p *Page) totals(at int64) totals {
	t := totals{Changes: p.until(at)}
	for _, s := range p.scopes {
		x, _ := s.At(moment(at))
		t.Events += x.Events
		t.Requests += x.Requests()
		t.Failed += x.Failed
		t.Bytes += x.Bytes
		t.Objects += x.Objects
	}
	return t
}

// moment returns the last nanosecond of a microsecond, so that the moment of a change has the change.
func moment(at int64) time.Time { return time.UnixMicro(at).Add(time.Microsecond - 1) }

func (t totals) since(before totals) totals {
	return totals{
		t.Events - before.Events, t.Changes - before.Changes, t.Requests - before.Requests, t.Failed - before.Failed,
		t.Bytes - before.Bytes, t.Objects,
	}
}

// points divides the time before a moment. The rates are those of a second at least: a shorter time would show one
// event as a high peak.
func (p *Page) points(at int64) []point {
	window := min(max(p.last-p.first, shortWindow), longWindow)
	part := max(window/points, second)
	all := make([]point, 0, points)
	for i := range int64(points) {
		to := at - window + (i+1)*window/points
		now := p.totals(to)
		d, s := now.since(p.totals(to-part)), float64(part)/float64(second)
		all = append(all, point{
			At: float64(to) / float64(second), Events: float64(d.Events) / s, Changes: float64(d.Changes) / s,
			Failed: float64(d.Failed) / s, Bytes: float64(d.Bytes) / s, Objects: now.Objects,
		})
	}
	return all
}

// state returns what the streams of a scope had brought.
func (s named) state(at int64) scopeState {
	x, started := s.At(moment(at))
	earlier, _ := s.At(moment(at - second))
	out := scopeState{
		Name: s.name, Resource: s.Resource.String(), Activity: x.Activity, Code: x.Code, Started: started, Synced: x.Synced,
		Objects: x.Objects, Version: x.Version, Events: x.Events, Second: x.Events - earlier.Events, Bookmarks: x.Bookmarks,
		Lists: x.Lists, WatchLists: x.WatchLists, Watches: x.Watches, Failed: x.Failed, Bytes: x.Bytes,
	}
	if started {
		out.HeardAt = x.Time.UnixMicro()
	}
	if x.Activity == recording.None && x.Ended != 0 {
		out.Ended = x.Ended.String()
	}
	return out
}

// shown returns a change in JSON.
func (c change) shown() shownChange {
	return shownChange{c.at, c.name(), c.resource, api.FormatKey(c.Key), c.ResourceVersion}
}

// name returns the type of a change as the page shows it.
func (c change) name() string {
	switch {
	case c.Initial:
		return "Listed"
	case c.Type == watch.Added:
		return "Added"
	case c.Type == watch.Deleted:
		return "Deleted"
	default:
		return "Updated"
	}
}

// serveStep returns the time of the next change, or of the one before, of an object if the request names one.
func (p *Page) serveStep(w http.ResponseWriter, r *http.Request) {
	at, err := p.moment(r)
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	back, until := r.URL.Query().Get("by") == "-1", at
	if back {
		until--
	}
	n, all, timeOf := p.until(until), len(p.changes), func(i int) int64 { return p.changes[i].at }
	if r.URL.Query().Has("key") {
		o, places, err := p.asked(r)
		if err != nil {
			refuse(w, http.StatusNotFound, fmt.Errorf("%w: %s", err, o.resource))
			return
		}
		n, all, timeOf = p.untilOf(places, until), len(places), func(i int) int64 { return p.changes[places[i]].at }
	}
	found := at
	switch {
	case back && n > 0:
		found = timeOf(n - 1)
	case back:
		found = p.first
	case n < all:
		found = timeOf(n)
	}
	answer(w, http.StatusOK, map[string]int64{"at": found})
}
