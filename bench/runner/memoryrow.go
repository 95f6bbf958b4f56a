package runner

import (
	"time"

	"github.com/leatproject/leat/bench/subject"
)

// inMemory returns the rows without a server.
func inMemory(z Sizes) []Row {
	rows := []Row{fanout(z, 1), fanout(z, 4), fanout(z, 16), fanout(z, 64), hindered(z), backlog(z), stuck(z), overhead(z)}
	return append(append(rows, queues(z)...), readers(z), finders(z))
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

// both returns leat and client-go with the same work.
func both(s subject.Spec) []Entrant {
	return []Entrant{{Label: leat, Program: leat, Spec: s}, {Label: clientGo, Program: clientGo, Spec: s}}
}

// hindered measures the fan-out beside a handler that is slow or stuck. It should delay only itself.
func hindered(z Sizes) Row {
	stuck := subject.Spec{Work: subject.Hindered, Objects: 10_000, Events: 100_000, Handlers: 15}
	slow, coalescing := stuck, stuck
	slow.Pause, coalescing.Coalesce = time.Millisecond, true
	return Row{
		Name: "hindered", Title: "Fan-out to 15 handlers, beside one that is slow or stuck", Rounds: min(3, z.Rounds),
		Columns: []string{"deliveries/s", "cpu ns/delivery", "kept MB"},
		Note: "Deliveries to the 15, and the memory of the other one's backlog when the 15 have everything. The other one takes a millisecond for each of the 100,000 updates, " +
			"or never returns from the first. The bench holds the objects.",
		Entrants: []Entrant{
			{Label: "leat, one slow", Program: leat, Spec: slow},
			{Label: "client-go, one slow", Program: clientGo, Spec: slow},
			{Label: "leat, one stuck", Program: leat, Spec: stuck},
			{Label: "client-go, one stuck", Program: clientGo, Spec: stuck},
			{Label: "leat, one stuck, coalescing", Program: leat, Spec: coalescing},
		},
	}
}

// leatAndExtra returns leat, which has a target, and client-go without one.
func leatAndExtra(s subject.Spec) []Entrant {
	entrants := both(s)
	entrants[1].Extra = true
	return entrants
}

func backlog(z Sizes) Row {
	spec := subject.Spec{Work: subject.Backlog, Objects: 10_000, Events: 50_000, Handlers: 16}
	return Row{
		Name: "backlog", Title: "The backlog of 16 handlers", Quick: true, Rounds: min(3, z.Rounds), Columns: []string{"B/delivery"},
		Note:     "Only the bookkeeping: the bench holds the objects to deliver.",
		Entrants: both(spec),
	}
}

func stuck(z Sizes) Row {
	spec := subject.Spec{Work: subject.Stuck, Objects: 10_000, Events: 300_000, Handlers: 1}
	coalescing := spec
	coalescing.Coalesce = true
	return Row{
		Name: "stuck", Title: "One handler that is stuck", Quick: false, Rounds: min(3, z.Rounds), Columns: []string{"B/update", "grown MB"},
		Note:     "300,000 updates of 10,000 objects. The memory includes old states that only the handler's backlog holds.",
		Entrants: append(both(spec), Entrant{Label: "leat, coalescing", Program: leat, Spec: coalescing}),
	}
}

func overhead(z Sizes) Row {
	return Row{
		Name: "overhead", Title: "Memory of a cache with one index, without the objects", Quick: true, Rounds: min(3, z.Rounds),
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
			Note:     "One goroutine and 64 keys. leat's adds carry their causes, here and below.",
			Entrants: all(subject.Spec{Work: subject.Queue, Events: 500_000}),
		},
		{
			Name: "queue-contended", Title: "Workqueue: four producers, four consumers", Quick: true, Rounds: z.Rounds, Columns: queueColumns,
			Note: "The figures count Done calls. Every key is added once.", Entrants: all(subject.Spec{Work: subject.QueueContended, Events: z.Keys}),
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

var readerColumns = []string{"of spinning", "writes/cpu s", "writes/cpu s, spinning", "writes/s", "reads/s"}

func readers(z Sizes) Row {
	return Row{
		Name: "readers", Title: "One writer, ten readers that list 10,000 objects", Quick: true, Rounds: min(3, z.Rounds), Columns: readerColumns,
		Note: "Each write is published by itself. A process writes beside readers and beside as many spinning goroutines, in turns of less than a second. " +
			"The figures are writes per second of the process's processor time. Without contention, both are equal.",
		Entrants: leatAndExtra(subject.Spec{Work: subject.Readers, Objects: 10_000, Lasts: z.Phase}),
	}
}

func finders(z Sizes) Row {
	return Row{
		Name: "finders", Title: "One writer, ten readers that query an index", Rounds: min(3, z.Rounds), Columns: readerColumns,
		Note:     "The same with an index of a thousand values of ten objects each. One write in ten moves an object to another value.",
		Entrants: leatAndExtra(subject.Spec{Work: subject.Finders, Objects: 10_000, Lasts: z.Phase}),
	}
}
