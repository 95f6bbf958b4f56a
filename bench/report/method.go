package report

const intro = `# Benchmarks

leat and client-go, the same work, in one run, by turns. This page and its charts are written by ` + "`make bench`" + `; no figure is
typed by hand. Ratios travel, absolute figures do not: they are of the machine at the end of the page. A target that is missed says so.

`

// method answers what a reader who doubts the figures would ask.
const method = `
Each figure is the median of several rounds, the lowest and the highest beside it, and ratios are of medians of one run. What
does not depend on the machine is checked by ` + "`make bench-quick`" + ` with fewer objects, in less than two minutes.

## How it is measured

**Processes.** Every figure is of a process of its own that does one work and ends, and does it with the same code for every
library. Entrants take turns, and each round begins with another one. All are built alike (` + "`CGO_ENABLED=0 -trimpath`" + `, no profile
to guide the compiler), with the same versions of k8s.io/api and apimachinery, and run at the garbage collector's defaults:
environment variables that change the Go runtime or client-go are taken out.

**Figures.** Processor time is the rusage of the whole process, garbage collection included. Peak memory is VmHWM, the program
itself included. The live heap is what three collections leave, less what there was before the client. Allocations are counted by the Go runtime.
The server runs in another process on the same machine: it takes nothing of the processor time, but where something is counted by
the clock (wall s, events/s, latency) it has its part of the cores.

**Load.** A server of this bench answers from memory with pods that are encoded already: 6.7 to 9.2 KB of JSON, 38 % of which are
managedFields, from a fixed seed. Twenty replicas share labels, images and variables with each other, as those of a ReplicaSet
do; leat keeps such strings once, and that is part of what is measured. The server compresses nothing, and does not know ` + "`drop=metadata.managedFields`" + `,
which is alpha: leat asks for it, and gets what everybody gets. Each event is one write and one chunk, over HTTP/1.1 without TLS; a table
has the same over TLS and HTTP/2. How it is with a real API server is measured by ` + "`make bench-real`" + `, whose tables stand here too once it has run.

**Settings.** leat and client-go run as they come, and what client-go does better with another setting has a line of its own:
protobuf or JSON; a list instead of a streaming one ("listed", with the number of answers that it took: from a watch cache a list comes
in one, whatever its limit); a transform that drops managedFields, and no index by namespace, which its factory adds of its own accord ("stripped").
leat drops managedFields by default, has a line where it keeps them, and has no index that nobody asks for. What an entrant was left to choose, and
chose, stands behind its name. What was really on the wire is checked, but with a real API server: an entrant that spoke another encoding than its line says has no figure.

**Not the same thing.** "8 fields" is a struct with name, namespace, UID, version, labels, node, phase and address. client-go has no such
thing: who needs eight fields of a pod there decodes all of them, which is what the targets of these rows compare with, or has an informer of metadata, which lacks
two of the three that matter, and which is in the tables.

**Bursts.** Events of a watch come as fast as a client takes them, so that what is done once a batch is shared by many; leat
gains more by that than client-go does. Where events come one by one, which is the other end, is under *Growth: single updates* and *From a write to the handler*.

**In memory.** The source of the fan-out hands out updates that exist already. To client-go it does so through a channel, as a watch does there, with room for 1,024 of
them, which is more than a real one has; to leat by a loop, as a watch does here. Handlers count and return. What both are told of is held by
the bench, but for *One handler that is stuck*, where nobody else holds old states.

**Queues.** client-go's has the rate limiter that controllers get by default, and no metrics; controller-runtime's counts its metrics, because it comes that
way; leat's adds carry the cause of each, which is more than the others keep.

**Programs.** What leat's own code adds is the difference to a program that is linked with every package that leat is linked with,
which a test compares, and reads pods with them by hand.

To repeat it: ` + "`make bench`" + ` (about a quarter of an hour; Linux, nothing else running), or one row with
` + "`go -C bench run ./cmd/bench -only '^events$' -profiles profiles`" + `, which leaves profiles for ` + "`go tool pprof`" + ` as well.

`
