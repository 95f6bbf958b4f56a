package runner

import (
	"time"

	"github.com/leatproject/leat/bench/subject"
)

// Row is one work, and who does it.
type Row struct {
	Name, Title, Note string
	Columns           []string
	Entrants          []Entrant
	TLS               bool
	Quick             bool // is part of a quick run
	Rounds            int  // of a whole run
}

// Entrant is one library with its settings.
type Entrant struct {
	Label   string
	Program string // "leat", "client-go", "controller-runtime"
	Spec    subject.Spec
	Env     []string
	Single  bool // events come one by one
	Extra   bool // no target names it: a quick run leaves it out
	Rounds  int  // no more than so many; 0 is as many as the row has
}

// rounds is how often an entrant takes its turn.
func (r *Row) rounds(entrant int) int {
	if most := r.Entrants[entrant].Rounds; most > 0 {
		return min(most, r.Rounds)
	}
	return r.Rounds
}

// turns is how many there are in all rounds.
func (r *Row) turns() (n int) {
	for i := range r.Entrants {
		n += r.rounds(i)
	}
	return n
}

// withExtras has entrants that no target names take their turns no more than so often.
func (r Row) withExtras(rounds int) Row {
	for i := range r.Entrants {
		if r.Entrants[i].Extra {
			r.Entrants[i].Rounds = rounds
		}
	}
	return r
}

// The subjects.
const (
	leat              = "leat"
	clientGo          = "client-go"
	controllerRuntime = "controller-runtime"
)

// Sizes are how much is done.
type Sizes struct {
	Cached   int // pods whose memory is measured
	Watched  int // pods whose events are measured
	Events   int
	Relisted int
	Latency  int // events
	Largest  int // pods of the growth
	Keys     int // that go through a contended queue
	Rounds   int
	Phase    time.Duration // of a writer beside readers
}

// Full and Quick are the sizes of a whole and of a quick run.
var (
	Full  = Sizes{Cached: 50_000, Watched: 5_000, Events: 10_000, Relisted: 30_000, Latency: 1_500, Largest: 1_000_000, Keys: 300_000, Rounds: 5, Phase: 750 * time.Millisecond}
	Quick = Sizes{Cached: 10_000, Watched: 2_000, Events: 5_000, Relisted: 10_000, Latency: 400, Largest: 200_000, Keys: 60_000, Rounds: 2, Phase: 350 * time.Millisecond}
)

// Rows returns everything that is measured, in the order of the targets.
func Rows(z Sizes) []Row {
	rows := []Row{events(z, false), eventsOverTLS(z), caches(z), syncs(z), relists(z)}
	rows = append(rows, inMemory(z)...)
	return append(rows, latencies(z), growth(z), changes(z))
}

var eventColumns = []string{"cpu us/event", "allocs/event", "B/event", "events/s"}

func events(z Sizes, tls bool) Row {
	spec := subject.Spec{Work: subject.Events, Objects: z.Watched, Events: z.Events}
	stripped := spec
	stripped.Strip = true
	row := Row{
		Name: "events", Title: "Events of a watch", Quick: true, TLS: tls, Columns: eventColumns, Rounds: z.Rounds,
		Note: "Processor time from before the first event is sent until a handler was told of the last, for pods that are cached already. They come as fast as the client takes them.",
		Entrants: []Entrant{
			entrant("leat, corev1.Pod, JSON", leat, spec, subject.Full, subject.JSON),
			entrant("client-go, corev1.Pod, JSON", clientGo, spec, subject.Full, subject.JSON),
			entrant("leat, 8 fields, JSON", leat, spec, subject.Struct, subject.JSON),
			entrant("leat, corev1.Pod, protobuf", leat, spec, subject.Full, subject.Protobuf),
			entrant("client-go, corev1.Pod, protobuf", clientGo, spec, subject.Full, subject.Protobuf),
			entrant("leat, 8 fields, protobuf", leat, spec, subject.Struct, subject.Protobuf),
			extra(entrant("client-go, corev1.Pod, JSON, stripped", clientGo, stripped, subject.Full, subject.JSON)),
			extra(entrant("client-go, corev1.Pod, protobuf, stripped", clientGo, stripped, subject.Full, subject.Protobuf)),
			extra(entrant("leat, metadata", leat, spec, subject.Metadata, "")),
			extra(entrant("client-go, metadata", clientGo, spec, subject.Metadata, "")),
			extra(entrant("client-go, metadata, stripped", clientGo, stripped, subject.Metadata, "")),
			extra(entrant("leat, unstructured", leat, spec, subject.Unstructured, subject.JSON)),
			extra(entrant("client-go, unstructured", clientGo, spec, subject.Unstructured, subject.JSON)),
		},
	}
	return row.withExtras(2)
}

func eventsOverTLS(z Sizes) Row {
	row := events(z, true)
	row.Name, row.Title, row.Quick, row.Rounds = "events-tls", "Events of a watch, over TLS and HTTP/2", false, min(2, z.Rounds)
	row.Entrants = row.Entrants[:6]
	return row
}

func entrant(label, program string, s subject.Spec, form subject.Form, wire subject.Wire) Entrant {
	s.Form, s.Wire = form, wire
	return Entrant{Label: label, Program: program, Spec: s}
}

func extra(e Entrant) Entrant {
	e.Extra = true
	return e
}

// listed has client-go list instead of stream its first list.
func listed(e Entrant) Entrant {
	e.Env = []string{"KUBE_FEATURE_WatchListClient=false"}
	return e
}

// caches is what a cache keeps, and what it takes to fill it.
func caches(z Sizes) Row {
	spec := subject.Spec{Work: subject.Sync, Objects: z.Cached}
	stripped := spec
	stripped.Strip = true
	kept := spec
	kept.Keep = true
	listing := spec
	listing.Listed = true
	row := Row{
		Name: "cache", Title: "The first list, and what stays in memory", Quick: true, Rounds: min(3, z.Rounds),
		Columns: []string{"live B/object", "live MB", "peak MB", "cpu s", "wall s", "allocs/object"},
		Note:    "From before there is a client until a handler knows every pod; the live heap after that, collected, and the most memory that was ever resident.",
		Entrants: []Entrant{
			entrant("leat, corev1.Pod", leat, spec, subject.Full, ""),
			entrant("client-go, corev1.Pod", clientGo, spec, subject.Full, ""),
			entrant("client-go, corev1.Pod, stripped", clientGo, stripped, subject.Full, ""),
			extra(entrant("leat, corev1.Pod, listed", leat, listing, subject.Full, "")),
			extra(listed(entrant("client-go, corev1.Pod, listed", clientGo, spec, subject.Full, ""))),
			extra(listed(entrant("client-go, corev1.Pod, stripped, listed", clientGo, stripped, subject.Full, ""))),
			extra(entrant("leat, corev1.Pod, managedFields kept", leat, kept, subject.Full, "")),
			entrant("leat, 8 fields, JSON", leat, spec, subject.Struct, subject.JSON),
			extra(entrant("leat, 8 fields", leat, spec, subject.Struct, "")),
			extra(entrant("leat, 8 fields, listed", leat, listing, subject.Struct, "")),
			extra(entrant("leat, metadata", leat, spec, subject.Metadata, "")),
			extra(entrant("client-go, metadata", clientGo, spec, subject.Metadata, "")),
			extra(entrant("client-go, metadata, stripped", clientGo, stripped, subject.Metadata, "")),
			extra(listed(entrant("client-go, metadata, stripped, listed", clientGo, stripped, subject.Metadata, ""))),
		},
	}
	return row.withExtras(2)
}

// syncs are the slower ways to fill a cache.
func syncs(z Sizes) Row {
	z.Cached /= 5
	row := caches(z)
	spec := subject.Spec{Work: subject.Sync, Objects: z.Cached}
	stripped := spec
	stripped.Strip = true
	listing := spec
	listing.Listed = true
	row.Name, row.Title, row.Quick, row.Rounds = "cache-json", "The first list, in JSON", false, min(2, z.Rounds)
	row.Note = "The same with a fifth of the pods."
	row.Entrants = []Entrant{
		entrant("leat, corev1.Pod, JSON", leat, spec, subject.Full, subject.JSON),
		entrant("client-go, corev1.Pod, JSON", clientGo, spec, subject.Full, subject.JSON),
		entrant("leat, corev1.Pod, JSON, listed", leat, listing, subject.Full, subject.JSON),
		listed(entrant("client-go, corev1.Pod, JSON, listed", clientGo, spec, subject.Full, subject.JSON)),
		entrant("leat, unstructured", leat, spec, subject.Unstructured, subject.JSON),
		entrant("client-go, unstructured", clientGo, spec, subject.Unstructured, subject.JSON),
		entrant("client-go, unstructured, stripped", clientGo, stripped, subject.Unstructured, subject.JSON),
	}
	return row
}

func relists(z Sizes) Row {
	spec := subject.Spec{Work: subject.Relist, Objects: z.Relisted}
	stripped, listing := spec, spec
	stripped.Strip, listing.Listed = true, true
	row := Row{
		Name: "relist", Title: "A list of what has not changed", Quick: true, Rounds: min(3, z.Rounds),
		Columns: []string{"allocs/object", "B/object", "live MB", "peak MB", "peak/live", "cpu us/object", "notifications"},
		Note:    "The watch ends with 410 and the collection is listed again, every object being what it was. The heap in use is looked at every 10 ms.",
		Entrants: []Entrant{
			entrant("leat, corev1.Pod", leat, spec, subject.Full, ""),
			entrant("client-go, corev1.Pod", clientGo, spec, subject.Full, ""),
			entrant("client-go, corev1.Pod, stripped", clientGo, stripped, subject.Full, ""),
			extra(entrant("leat, corev1.Pod, JSON", leat, spec, subject.Full, subject.JSON)),
			extra(entrant("leat, 8 fields", leat, spec, subject.Struct, "")),
			entrant("leat, 8 fields, JSON", leat, spec, subject.Struct, subject.JSON),
			extra(entrant("leat, 8 fields, listed", leat, listing, subject.Struct, "")),
			extra(listed(entrant("client-go, corev1.Pod, stripped, listed", clientGo, stripped, subject.Full, ""))),
		},
	}
	return row.withExtras(2)
}
