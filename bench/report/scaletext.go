package report

const scaleIntro = `# Scale

This page says how leat grows, what a fleet of agents costs an API server, and which setting moves each limit. Every
figure is measured by a row of the bench, or computed from such a figure. ` + "`make bench`" + ` and ` + "`make bench-real`" + ` measure the
rows and write this page; [benchmarks.md](benchmarks.md) has all rows, and names the machine. To write the page again
from the stored figures:

    go -C bench run ./cmd/bench -docs ../docs -again

## One informer, up to a million objects

The struct of eight fields, in JSON (rows ` + "`growth`" + ` and ` + "`changes`" + `). The bytes of an object and the cost of an update do
not depend on the number of objects. Updates come one by one, so that their cost includes a wake-up.

`

const scaleElection = `## Under leader election, one replica holds everything

With client-go and leader election, one replica reconciles all objects, and every replica that has started its caches
holds all of them. More replicas do not divide the work. The table computes a million pods from the row ` + "`cache`" + `, which
measures 50,000. A replica that starts its caches only as the leader saves memory, and lists everything at a hand-over.

`

const scaleShards = `There are three ways to hold less in each replica. A type of your own has only the fields that you read. Package
` + "`packed`" + ` holds whole objects as bytes. Package ` + "`shard`" + ` divides the objects of a controller among replicas, so that
each holds its part; [its decision](decisions/0033-shards.md) has the reasons. By default, objects also share equal
parts; "unshared" is ` + "`informer.Options.NoSharedParts`" + `.

Package ` + "`shard/cut`" + ` reads one shard of a collection (row ` + "`shard`" + `). If the API server obeys ` + "`shardSelector`" + ` (KEP-5866),
an agent with one fifth of the objects receives and decodes only these. Otherwise the client drops the other objects
before it decodes them: this saves the same memory and a part of the processor time, but no bytes. Each shard also holds
the parts that its objects share with those of other shards, such as labels of one workload.

`

const scaleNamespaces = `## 1,000 namespaces

A program without the permission to read all namespaces lists each of them. Package ` + "`scopes`" + ` reads them with one
informer: one queue, one cache and one set of handlers (row ` + "`scopes`" + `).

`

const scaleFleet = `## 5,000 agents at one API server

Each node agent watches the pods of its node. A real etcd and kube-apiserver on the machine of the bench had 1,000 of
them, each with its own TLS connection (row ` + "`fleet`" + `; ` + "`make bench-real`" + `). All columns are costs of the server for one
agent, one change or one list. KB/agent includes the connection and its TLS session.

`

const scaleWarm = `An agent reads its state from the watch cache of the API server: a WatchList, or a list with ` + "`resourceVersion=0`" + `. Both
send nothing to etcd for the objects. Package ` + "`fleet`" + ` spreads the first lists over time and lets the watch cache answer
with any version. Package ` + "`warmstart`" + ` avoids the list (row ` + "`warm`" + `): the agent continues its watch from a file.

`

const scaleLimits = `## Where the limits are

| limit | what it bounds | what happens there | settings that move it |
|---|---|---|---|
| etcd | writes, and lists of the newest version | each write is one transaction of the whole cluster | write less; read from caches: ` + "`cachedclient`" + `, WatchLists |
| watch cache of kube-apiserver | the history that a watch can resume from | after a longer outage every watch gets 410 and lists again | ` + "`--watch-cache-sizes`" + `; bookmarks, which leat requests |
| processor of kube-apiserver | handshakes, lists and events of all clients | answers of 429, and slow lists | ` + "`fleet.Options.Jitter`" + `; field selectors; protobuf |
| priority and fairness | lists in progress of one kind of clients | requests wait, then 429 with Retry-After | ` + "`scopes.Options.MaxLists`" + `, ` + "`fleet.Options.MaxLists`" + ` |
| bandwidth of the server | bytes of an event times its watches | watches fall behind and are closed | selectors, shards, ` + "`metadata`" + ` or a partial type |
| memory of the agent | objects times bytes | the agent is killed | a type of your own, ` + "`packed`" + `, ` + "`fleet.ForNode`" + ` with ` + "`GOMEMLIMIT`" + ` |
| processor of the agent | events times the cost of an event | the backlog of a handler grows | shards, protobuf, coalescing handlers |
| connections | streams of one HTTP/2 connection | a new connection when all streams of one are in use | scopes with selectors that cover several namespaces |

leat bounds the parts that it owns. After an outage, a reflector spreads its list over five seconds. A failed request
waits at most 30 s before the next, and honors ` + "`Retry-After`" + `. Several clusters have a client and informers each;
see package ` + "`clusters`" + `.
`
