package runner

import (
	"time"

	"github.com/leatproject/leat/bench/subject"
)

// Row is one work, with its entrants.
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
	Program string // one of the subjects below
	Spec    subject.Spec
	Env     []string
	Single  bool // events come one by one
	TLS     bool // of a test server of leat
	Cuts    bool // the server obeys shardSelector
	Extra   bool // without a target: a quick run skips it
	Rounds  int  // at most so many; 0 means the row's number
}

// rounds returns the number of turns of an entrant.
func (r *Row) rounds(entrant int) int {
	if most := r.Entrants[entrant].Rounds; most > 0 {
		return min(most, r.Rounds)
	}
	return r.Rounds
}

// turns returns the number of turns in all rounds.
func (r *Row) turns() (n int) {
	for i := range r.Entrants {
		n += r.rounds(i)
	}
	return n
}

// withExtras limits the rounds of entrants without a target.
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
	bare              = "bare"
)

// Sizes are the numbers of objects and events.
type Sizes struct {
	Cached     int // pods in the rows about memory
	Watched    int // pods in the rows about events
	Events     int
	Relisted   int
	Latency    int // events
	Largest    int // pods in the growth rows
	Resources  int // custom resources
	Namespaces int
	Keys       int // keys in the rows about contended queues
	Rounds     int
	Phase      time.Duration // duration of a phase of a writer beside readers
}

// Full and Quick are the sizes of a whole and of a quick run.
var (
	Full  = Sizes{Cached: 50_000, Watched: 5_000, Events: 10_000, Relisted: 30_000, Latency: 1_500, Largest: 1_000_000, Resources: 500, Namespaces: 1_000, Keys: 300_000, Rounds: 5, Phase: 750 * time.Millisecond}
	Quick = Sizes{Cached: 10_000, Watched: 2_000, Events: 5_000, Relisted: 10_000, Latency: 400, Largest: 200_000, Resources: 100, Namespaces: 1_000, Keys: 60_000, Rounds: 2, Phase: 350 * time.Millisecond}
)

// Rows returns all rows, in the order of the targets.
func Rows(z Sizes) []Row {
	rows := []Row{events(z, false), fresh(z), eventsOverTLS(z), caches(z), syncs(z), relists(z)}
	rows = append(rows, inMemory(z)...)
	return append(rows, latencies(z), reconciles(z), growth(z), changes(z), resources(z), namespaces(z), warmStarts(z), shards(z), instruments(z))
}

var eventColumns = []string{"cpu us/event", "allocs/event", "B/event", "events/s"}

func events(z Sizes, tls bool) Row {
	spec := subject.Spec{Work: subject.Events, Objects: z.Watched, Events: z.Events}
	stripped, unshared := spec, spec
	stripped.Strip, unshared.Unshared = true, true
	row := Row{
		Name: "events", Title: "Events of a watch", Quick: true, TLS: tls, Columns: eventColumns, Rounds: z.Rounds,
		Note: "Processor time from before the first event is sent until the handler has the last one. The pods are already cached, and the events come as fast as the client reads them.",
		Entrants: []Entrant{
			entrant("leat, corev1.Pod, JSON", leat, spec, subject.Full, subject.JSON),
			entrant("client-go, corev1.Pod, JSON", clientGo, spec, subject.Full, subject.JSON),
			entrant("leat, 8 fields, JSON", leat, spec, subject.Struct, subject.JSON),
			entrant("leat, corev1.Pod, protobuf", leat, spec, subject.Full, subject.Protobuf),
			entrant("client-go, corev1.Pod, protobuf", clientGo, spec, subject.Full, subject.Protobuf),
			entrant("leat, 8 fields, protobuf", leat, spec, subject.Struct, subject.Protobuf),
			entrant("leat, corev1.Pod packed, protobuf", leat, spec, subject.Packed, subject.Protobuf),
			entrant("leat, corev1.Pod compressed, protobuf", leat, spec, subject.Compressed, subject.Protobuf),
			entrant("leat, corev1.Pod masked, JSON", leat, spec, subject.Masked, subject.JSON),
			entrant("leat, corev1.Pod masked, protobuf", leat, spec, subject.Masked, subject.Protobuf),
			entrant("leat, corev1.Pod masked and packed, protobuf", leat, spec, subject.MaskedPacked, subject.Protobuf),
			extra(entrant("leat, corev1.Pod unshared, protobuf", leat, unshared, subject.Full, subject.Protobuf)),
			extra(entrant("client-go, corev1.Pod, JSON, stripped", clientGo, stripped, subject.Full, subject.JSON)),
			extra(entrant("client-go, corev1.Pod, protobuf, stripped", clientGo, stripped, subject.Full, subject.Protobuf)),
			extra(entrant("no library, corev1.Pod, protobuf", bare, spec, subject.Full, subject.Protobuf)),
			extra(entrant("leat, metadata", leat, spec, subject.Metadata, "")),
			extra(entrant("client-go, metadata", clientGo, spec, subject.Metadata, "")),
			extra(entrant("client-go, metadata, stripped", clientGo, stripped, subject.Metadata, "")),
			extra(entrant("leat, unstructured", leat, spec, subject.Unstructured, subject.JSON)),
			extra(entrant("client-go, unstructured", clientGo, spec, subject.Unstructured, subject.JSON)),
		},
	}
	return row.withExtras(2)
}

// fresh has the events in which nothing can be shared, and those of a handler that takes both states of packed objects.
func fresh(z Sizes) Row {
	best := subject.Spec{Work: subject.Events, Objects: z.Watched, Events: z.Events, Both: true}
	spec := best
	spec.Fresh = true
	unshared := spec
	unshared.Unshared = true
	return Row{
		Name: "fresh", Title: "Events of a watch, the worst case", Quick: true, Columns: eventColumns, Rounds: z.Rounds,
		Note: "As above, but each event changes every text of the pod except its name, its namespace, its UID and the keys of maps. In the last rows, the handler of packed pods takes the old and the new pod; their events are those of the row above.",
		Entrants: []Entrant{
			entrant("leat, corev1.Pod, protobuf", leat, spec, subject.Full, subject.Protobuf),
			entrant("leat, corev1.Pod unshared, protobuf", leat, unshared, subject.Full, subject.Protobuf),
			entrant("client-go, corev1.Pod, protobuf", clientGo, spec, subject.Full, subject.Protobuf),
			entrant("leat, 8 fields, protobuf", leat, spec, subject.Struct, subject.Protobuf),
			entrant("leat, corev1.Pod, JSON", leat, spec, subject.Full, subject.JSON),
			entrant("client-go, corev1.Pod, JSON", clientGo, spec, subject.Full, subject.JSON),
			entrant("leat, 8 fields, JSON", leat, spec, subject.Struct, subject.JSON),
			entrant("leat, corev1.Pod packed, objects, protobuf", leat, best, subject.Packed, subject.Protobuf),
			entrant("client-go, corev1.Pod, objects, protobuf", clientGo, best, subject.Full, subject.Protobuf),
		},
	}
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

// listed makes client-go list instead of using a WatchList.
func listed(e Entrant) Entrant {
	e.Env = []string{"KUBE_FEATURE_WatchListClient=false"}
	return e
}

// caches measures the memory of a cache, and the work to fill it.
func caches(z Sizes) Row {
	spec := subject.Spec{Work: subject.Sync, Objects: z.Cached}
	stripped, unshared := spec, spec
	stripped.Strip, unshared.Unshared = true, true
	kept := spec
	kept.Keep = true
	listing := spec
	listing.Listed = true
	row := Row{
		Name: "cache", Title: "The first list, and the memory afterwards", Quick: true, Rounds: min(3, z.Rounds),
		Columns: []string{"live B/object", "live MB", "peak MB", "cpu s", "wall s", "allocs/object"},
		Note:    "From before the client exists until the handler has every pod. Live heap after a collection, and the largest resident memory.",
		Entrants: []Entrant{
			entrant("leat, corev1.Pod", leat, spec, subject.Full, ""),
			entrant("client-go, corev1.Pod", clientGo, spec, subject.Full, ""),
			entrant("client-go, corev1.Pod, stripped", clientGo, stripped, subject.Full, ""),
			entrant("leat, corev1.Pod packed", leat, spec, subject.Packed, ""),
			entrant("leat, corev1.Pod compressed", leat, spec, subject.Compressed, ""),
			entrant("leat, corev1.Pod masked", leat, spec, subject.Masked, ""),
			entrant("leat, corev1.Pod masked and packed", leat, spec, subject.MaskedPacked, ""),
			extra(entrant("leat, corev1.Pod unshared", leat, unshared, subject.Full, "")),
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

// syncs measures the slower ways to fill a cache.
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
		Name: "relist", Title: "A list without changes", Quick: true, Rounds: min(3, z.Rounds),
		Columns: []string{"allocs/object", "B/object", "live MB", "peak MB", "peak/live", "cpu us/object", "notifications"},
		Note:    "The watch ends with 410, and the client lists the collection again. No object has changed. The heap in use is sampled every 10 ms.",
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
