package report

const intro = `# Benchmarks

leat and client-go at the same work, in one run. ` + "`make bench`" + ` writes this page and its charts from the measured figures.
Ratios are similar on other machines; absolute figures are not. A missed target is marked.
[benchmarks/rows.md](benchmarks/rows.md) has every row of the run, and the machine.
[benchmarks/method.md](benchmarks/method.md) says how it is measured, and how to repeat it.

`

const rowsIntro = `# All rows of the bench

[benchmarks.md](../benchmarks.md) has the targets and the charts of these rows, and [method.md](method.md) says how they
are measured. Each figure is the median of several rounds, followed by the lowest and the highest value.

`

// questions say what the IDs of the targets stand for.
var questions = [][2]string{
	{"P1", "events of a watch as whole Pods, JSON"},
	{"P2", "events of a watch in 8 fields, JSON"},
	{"P3", "events of a watch as whole Pods, protobuf"},
	{"P4", "events of a watch in 8 fields, protobuf"},
	{"P5", "memory of a cache of whole Pods"},
	{"P6", "memory of a cache of 8 fields"},
	{"P7", "peak memory of the first list"},
	{"P8", "a list in which nothing has changed"},
	{"P9", "many handlers of one informer, and one that is slow"},
	{"P10", "the workqueue"},
	{"P11", "one writer of a cache beside many readers"},
	{"P12", "a small agent: its binary, and its memory without work"},
	{"P13", "the time from a write to the handler"},
	{"P14", "growth from 10,000 objects to a million"},
	{"P15", "a cache of bytes, packed or compressed"},
	{"P16", "parts that objects share"},
	{"P17", "one event at a time"},
	{"P18", "500 custom resources"},
	{"P19", "many namespaces, warm starts, and shards"},
	{"P20", "test servers beside etcd and kube-apiserver"},
	{"P21", "one operator on three libraries"},
	{"tap", "what a recording costs"},
}

// Method is the page docs/benchmarks/method.md. It answers the questions of a reader who doubts the figures.
const Method = `# How the bench measures

Each figure is the median of several rounds, followed by the lowest and the highest value. Ratios compare medians of
one run. The ratio of processor time with the ID tap is the median of the ratios in each round, because its bound is
smaller than the noise from round to round. ` + "`make bench-quick`" + ` checks the figures that do not depend on the
machine, with fewer objects and in a few minutes.

**Processes.** Each figure comes from a process that does one work and ends. All libraries run the same code for a
work. Entrants take turns, and each round begins with another one. All are built with ` + "`CGO_ENABLED=0 -trimpath`" + `,
without profile-guided optimization, with the same versions of k8s.io/api and apimachinery, and with the default
settings of the garbage collector. Environment variables that change the Go runtime or client-go are removed.

**Figures.** Processor time is the rusage of the whole process, including garbage collection. Peak memory is VmHWM,
including the program itself. The live heap is the heap after three collections, less the heap before the client was
created. The Go runtime counts allocations. The server runs in another process on the same machine. It does not add to
the processor time, but it shares the cores, which affects figures of the clock: wall s, events/s and latency.

**Load.** A server of the bench answers from memory with pods that are already encoded: 6.7 to 9.2 KB of JSON from a
fixed seed, of which 38 % are managedFields. Twenty replicas share labels, images and variables, as those of a
ReplicaSet do. leat stores such strings once, and this is part of the result. The server does not compress. It ignores
` + "`drop=metadata.managedFields`" + `, which is alpha; leat requests it and gets the same bytes as the others. Each event is
one write and one chunk, over HTTP/1.1 without TLS; one table has the same over TLS and HTTP/2. ` + "`make bench-real`" + `
measures with a real API server and adds its tables.

**Settings.** leat and client-go run with their defaults. Settings with which client-go is better have their own lines:
protobuf or JSON; a list instead of a WatchList ("listed", with the number of answers, because a watch cache answers a
list at once, whatever its limit); a transform that drops managedFields, and no index by namespace, which the factory
adds by default ("stripped"). leat drops managedFields by default and has a line in which it keeps them. Its informers
have no index by default. If an entrant chooses the encoding itself, the choice is behind its name. Except with a real
API server, the bench checks the encoding on the wire: an entrant with another encoding than its line says has no
figure.

**Different work.** "8 fields" is a struct with name, namespace, UID, version, labels, node, phase and address.
client-go has no equivalent. A program that needs eight fields of a pod either decodes the whole pod, and the targets
compare with that. Or it uses an informer of metadata, which lacks node, phase and address, and which is in the tables.

**Bursts.** Events of a watch come as fast as the client reads them, so that many events share the work of a batch.
leat gains more from this than client-go. The opposite case, single events, is in *Growth: single updates* and *From a
write to the handler*.

**Shared parts.** Events change a message and the version of a pod, and not its spec, as most updates of pods do. leat
takes the spec, and other parts with equal bytes, from objects that it has. "unshared" decodes all of each object.

**In memory.** The source of the fan-out sends updates that already exist. client-go receives them through a channel,
like those of its watches, with room for 1,024 updates, which is more than a real watch has. leat receives them in a
loop, like those of its watches. Handlers count and return. The bench keeps a reference to all delivered objects,
except in *One handler that is stuck*, where only the backlog does.

**Queues.** client-go's queue has the default rate limiter of controllers and no metrics. controller-runtime's queue
counts its metrics, which cannot be disabled. leat's adds carry their causes, which the other queues do not have.

**API servers.** Their processor time is that of their processes, as Linux counts it; the client is another process and
does not count. The start of a process is wall time, and a busy machine makes it longer.

**Programs.** The share of leat's own code is the difference to a program that is linked with the same dependencies and
reads pods with them directly. A test compares the dependencies.

To repeat the run, use ` + "`make bench`" + ` (about half an hour; on Linux, with nothing else running). For one row, use
` + "`go -C bench run ./cmd/bench -only '^events$' -profiles profiles`" + `, which also writes profiles for ` + "`go tool pprof`" + `.
`
