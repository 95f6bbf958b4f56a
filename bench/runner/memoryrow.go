package runner

import (
	"strconv"

	"github.com/leatproject/leat/bench/subject"
)

// inMemory are the rows without a server.
func inMemory(z Sizes) []Row {
	rows := []Row{fanout(z, 1), fanout(z, 4), fanout(z, 16), fanout(z, 64), backlog(z), stuck(z), overhead(z)}
	return append(append(rows, queues(z)...), readers(z))
}

func fanout(z Sizes, handlers int) Row {
	spec := subject.Spec{Work: subject.Fanout, Objects: 10_000, Events: min(300_000, 4_000_000/(handlers+4)), Handlers: handlers}
	name := map[int]string{1: "fanout-1", 4: "fanout-4", 16: "fanout", 64: "fanout-64"}[handlers]
	titles := map[int]string{1: "Fan-out to one handler", 4: "Fan-out to 4 handlers", 16: "Fan-out to 16 handlers", 64: "Fan-out to 64 handlers"}
	rounds := 2
	if handlers == 16 {
		rounds = z.Rounds
	}
	return Row{
		Name: name, Title: titles[handlers], Quick: handlers == 16, Rounds: rounds, Columns: []string{"deliveries/s", "cpu ns/delivery", "B/delivery"},
		Note:     "Updates of 10,000 objects from memory, to handlers that count them.",
		Entrants: both(spec),
	}
}

// both are leat and client-go with the same work.
func both(s subject.Spec) []Entrant {
	return []Entrant{{Label: leat, Program: leat, Spec: s}, {Label: clientGo, Program: clientGo, Spec: s}}
}

func backlog(z Sizes) Row {
	spec := subject.Spec{Work: subject.Backlog, Objects: 10_000, Events: 50_000, Handlers: 16}
	return Row{
		Name: "backlog", Title: "What waits for 16 handlers", Quick: true, Rounds: min(3, z.Rounds), Columns: []string{"B/delivery"},
		Note:     "The bookkeeping alone: the objects that are to be delivered are held by the bench.",
		Entrants: both(spec),
	}
}

func stuck(z Sizes) Row {
	spec := subject.Spec{Work: subject.Stuck, Objects: 10_000, Events: 300_000, Handlers: 1}
	coalescing := spec
	coalescing.Coalesce = true
	return Row{
		Name: "stuck", Title: "One handler that is stuck", Quick: false, Rounds: min(3, z.Rounds), Columns: []string{"B/update", "grown MB"},
		Note:     "300,000 updates of 10,000 objects; old states that only the handler's backlog holds count.",
		Entrants: append(both(spec), Entrant{Label: "leat, coalescing", Program: leat, Spec: coalescing}),
	}
}

func overhead(z Sizes) Row {
	return Row{
		Name: "overhead", Title: "What a cache with one index keeps beside the objects", Quick: true, Rounds: min(3, z.Rounds),
		Columns: []string{"B/object"}, Entrants: both(subject.Spec{Work: subject.Overhead, Objects: 50_000}),
	}
}

var queueColumns = []string{"ns/op", "cpu ns/op", "allocs/op", "B/op"}

func queues(z Sizes) []Row {
	all := func(s subject.Spec) []Entrant {
		return append(both(s), Entrant{Label: controllerRuntime, Program: controllerRuntime, Spec: s})
	}
	return []Row{
		{
			Name: "queue", Title: "Workqueue: Add, Get, Done", Quick: true, Rounds: z.Rounds, Columns: queueColumns,
			Note:     "By one goroutine, over 64 keys. leat's adds carry their causes, here and below.",
			Entrants: all(subject.Spec{Work: subject.Queue, Events: 500_000}),
		},
		{
			Name: "queue-contended", Title: "Workqueue: four producers, four consumers", Quick: true, Rounds: z.Rounds, Columns: queueColumns,
			Note: "Counted in Done calls; every key is added once.", Entrants: all(subject.Spec{Work: subject.QueueContended, Events: z.Keys}),
		},
		{
			Name: "queue-priorities", Title: "Workqueue: the same, with three priorities", Quick: true, Rounds: z.Rounds, Columns: queueColumns,
			Entrants: []Entrant{
				{Label: leat, Program: leat, Spec: subject.Spec{Work: subject.QueuePriorities, Events: z.Keys}},
				{Label: controllerRuntime, Program: controllerRuntime, Spec: subject.Spec{Work: subject.QueuePriorities, Events: z.Keys}},
			},
		},
		{
			Name: "queue-delayed", Title: "Workqueue: AddAfter, a million waiting", Quick: false, Rounds: min(3, z.Rounds), Columns: queueColumns,
			Entrants: both(subject.Spec{Work: subject.QueueDelayed, Events: 200_000}),
		},
		{
			Name: "queue-limited", Title: "Workqueue: AddRateLimited, Forget", Quick: false, Rounds: min(3, z.Rounds), Columns: queueColumns,
			Entrants: both(subject.Spec{Work: subject.QueueLimited, Events: 200_000}),
		},
	}
}

func readers(z Sizes) Row {
	beside, alone := subject.Spec{Work: subject.Readers, Objects: 10_000}, subject.Spec{Work: subject.Spinners, Objects: 10_000}
	return Row{
		Name: "readers", Title: "One writer, ten readers that list 10,000 objects", Quick: true, Rounds: min(3, z.Rounds), Columns: []string{"writes/s", "reads/s"},
		Note: "Every write is published by itself. Beside goroutines that only take processor time, a writer shows what it could do on this machine.",
		Entrants: []Entrant{
			{Label: leat, Program: leat, Spec: beside},
			{Label: "leat, beside ten that spin", Program: leat, Spec: alone},
			{Label: clientGo, Program: clientGo, Spec: beside, Extra: true},
			{Label: "client-go, beside ten that spin", Program: clientGo, Spec: alone, Extra: true},
		},
	}
}

func latencies(z Sizes) Row {
	spec := subject.Spec{Work: subject.Latency, Objects: z.Watched, Events: z.Latency}
	return Row{
		Name: "latency", Title: "From a write to the handler", Quick: true, Rounds: min(3, z.Rounds), Columns: []string{"p50 us", "p99 us"},
		Note: "One event every two milliseconds, from before the server writes it until the handler is called.",
		Entrants: []Entrant{
			entrant("leat, corev1.Pod", leat, spec, subject.Full, ""), entrant("client-go, corev1.Pod", clientGo, spec, subject.Full, ""),
			extra(entrant("leat, corev1.Pod, JSON", leat, spec, subject.Full, subject.JSON)),
			extra(entrant("client-go, corev1.Pod, JSON", clientGo, spec, subject.Full, subject.JSON)),
			extra(entrant("leat, 8 fields, JSON", leat, spec, subject.Struct, subject.JSON)),
		},
	}
}

// growth fills caches of several sizes.
func growth(z Sizes) Row {
	row := Row{
		Name: "growth", Title: "Growth: the first list", Quick: true, Rounds: min(3, z.Rounds), Columns: []string{"cpu us/object", "peak B/object", "live B/object"},
		Note: "The struct of eight fields, in JSON.",
	}
	for _, n := range []int{10_000, z.Largest / 10, z.Largest} {
		e := entrant(thousands(n)+" pods", leat, subject.Spec{Work: subject.Sync, Objects: n}, subject.Struct, subject.JSON)
		e.Extra = n == z.Largest/10
		row.Entrants = append(row.Entrants, e)
	}
	return row
}

// changes are single updates in caches of several sizes.
func changes(z Sizes) Row {
	row := Row{
		Name: "changes", Title: "Growth: single updates", Quick: true, Rounds: min(3, z.Rounds), Columns: []string{"cpu us/event", "allocs/event", "B/event"},
		Note: "One random object every 200 microseconds, so that each is an event by itself.",
	}
	for _, n := range []int{10_000, z.Largest} {
		spec := subject.Spec{Work: subject.Events, Objects: n, Events: min(z.Events, 10_000)}
		e := entrant(thousands(n)+" pods", leat, spec, subject.Struct, subject.JSON)
		e.Single = true
		row.Entrants = append(row.Entrants, e)
	}
	return row
}

func thousands(n int) string {
	if n%1_000_000 == 0 {
		return strconv.Itoa(n/1_000_000) + ",000,000"
	}
	return strconv.Itoa(n/1000) + ",000"
}
