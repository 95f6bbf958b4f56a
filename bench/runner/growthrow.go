package runner

import (
	"strconv"

	"github.com/leatproject/leat/bench/subject"
)

var latencyColumns = []string{"p50 us", "p90 us", "p99 us", "p99.9 us", "cpu us/event", "kernel us/event"}

func latencies(z Sizes) Row {
	spec := subject.Spec{Work: subject.Latency, Objects: z.Watched, Events: z.Latency}
	row := Row{
		Name: "latency", Title: "From a write to the handler", Quick: true, Rounds: z.Rounds, Columns: latencyColumns,
		Note: "One event every two milliseconds. Time from before the server writes it until the handler is called. " +
			"The program without a library reads and decodes on one goroutine, which also is the handler.",
		Entrants: []Entrant{
			entrant("leat, corev1.Pod", leat, spec, subject.Full, ""), entrant("client-go, corev1.Pod", clientGo, spec, subject.Full, ""),
			extra(entrant("leat, corev1.Pod, JSON", leat, spec, subject.Full, subject.JSON)),
			extra(entrant("no library, corev1.Pod", bare, spec, subject.Full, subject.Protobuf)),
			extra(entrant("client-go, corev1.Pod, JSON", clientGo, spec, subject.Full, subject.JSON)),
			extra(entrant("leat, 8 fields, JSON", leat, spec, subject.Struct, subject.JSON)),
		},
	}
	return row.withExtras(2)
}

// reconciles measures single events of controllers.
func reconciles(z Sizes) Row {
	spec := subject.Spec{Work: subject.Reconcile, Objects: z.Watched, Events: z.Latency}
	return Row{
		Name: "reconcile", Title: "From a write to the reconcile", Quick: true, Rounds: z.Rounds, Columns: latencyColumns,
		Note: "One event every two milliseconds. Time from before the server writes it until the reconcile begins, with one worker.",
		Entrants: []Entrant{
			entrant("leat, corev1.Pod", leat, spec, subject.Full, ""),
			entrant("controller-runtime, corev1.Pod", controllerRuntime, spec, subject.Full, ""),
		},
	}
}

// few is the smallest size of the growth rows.
const few = 10_000

// growth measures the first list with several sizes of caches.
func growth(z Sizes) Row {
	row := Row{
		Name: "growth", Title: "Growth: the first list", Quick: true, Rounds: min(3, z.Rounds),
		Columns: []string{"cpu us/object", "allocs/object", "peak B/object", "live B/object"},
		Note:    "The struct of eight fields, in JSON. The peak does not include the memory of the process before the client exists.",
	}
	for _, n := range []int{few, z.Largest / 10, z.Largest} {
		e := entrant(sized("leat, 8 fields, JSON", n), leat, subject.Spec{Work: subject.Sync, Objects: n}, subject.Struct, subject.JSON)
		e.Extra = n == z.Largest/10
		row.Entrants = append(row.Entrants, e)
	}
	return row
}

// changes measures single updates in caches of several sizes. At the largest size, client-go cannot hold a million
// whole pods here, so its figures are those of its metadata informer.
func changes(z Sizes) Row {
	row := Row{
		Name: "changes", Title: "Growth: single updates", Quick: true, Rounds: min(3, z.Rounds), Columns: []string{"cpu us/event", "allocs/event", "B/event"},
		Note: "One random object every 200 microseconds, so that each event comes alone. The cost of waking up is included.",
	}
	stripped := subject.Spec{Strip: true}
	row.Entrants = []Entrant{
		single(entrant("leat, 8 fields, JSON", leat, subject.Spec{}, subject.Struct, subject.JSON), few, z),
		single(entrant("leat, 8 fields, JSON", leat, subject.Spec{}, subject.Struct, subject.JSON), z.Largest, z),
		extra(single(entrant("client-go, metadata, stripped", clientGo, stripped, subject.Metadata, ""), few, z)),
		extra(single(entrant("client-go, metadata, stripped", clientGo, stripped, subject.Metadata, ""), z.Largest, z)),
		extra(single(entrant("client-go, corev1.Pod, JSON", clientGo, subject.Spec{}, subject.Full, subject.JSON), few, z)),
		extra(single(entrant("client-go, corev1.Pod, protobuf", clientGo, subject.Spec{}, subject.Full, subject.Protobuf), few, z)),
	}
	return row.withExtras(1) // a million objects take long
}

// single sends single events to a cache with a number of objects.
func single(e Entrant, objects int, z Sizes) Entrant {
	e.Single, e.Label = true, sized(e.Label, objects)
	e.Spec.Work, e.Spec.Objects, e.Spec.Events = subject.Events, objects, min(z.Events, 4_000)
	return e
}

func sized(label string, n int) string { return label + ", " + thousands(n) }

func thousands(n int) string {
	if n%1_000_000 == 0 {
		return strconv.Itoa(n/1_000_000) + ",000,000"
	}
	return strconv.Itoa(n/1000) + ",000"
}
