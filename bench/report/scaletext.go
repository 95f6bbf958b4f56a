package report

const scaleIntro = `# Scale

This page says how leat grows, what a fleet of agents costs an API server, and which setting moves each limit. Every
figure is measured by a row of the bench, or computed from such a figure; other times are defaults of settings.
` + "`make bench`" + ` and ` + "`make bench-real`" + ` measure the rows and write this page; [rows.md](benchmarks/rows.md) has all rows
and names the machine. Rows are measured at different times, so compare processor times within a row. To write the page
again from the stored figures:

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
each works on its part and holds its part; [its decision](decisions/0033-shards.md) has the reasons. By default, objects
also share equal parts; "unshared" is ` + "`reflector.Memory.NoSharedParts`" + `. "Compressed" is ` + "`packed.Coded`" + ` with the module
scale/packed/zstd.

## With shards, each replica holds a part

Package ` + "`scale/shardedsource`" + ` reads one shard of a collection. If the API server obeys ` + "`shardSelector`" + ` (KEP-5866), a
replica with one fifth of the objects receives and decodes only these. Otherwise the client drops the other objects
before it decodes them. Each shard also holds the parts that its objects share with those of other shards, such as
labels of one workload. An event is a change of any object, of other shards too (row ` + "`shard`" + `).

`

const scaleProtocol = `A replica that is killed delays only its own objects: another replica gets them when the Lease has expired, after
` + "`shard.Options.LeaseDuration`" + `. With leader election, all objects wait that long. The price of shards is paid at the API
server: each replica renews its Lease and lists those of the group every ` + "`shard.Options.RetryPeriod`" + `, 2 s by default. So
n replicas send n updates and n lists of n Leases in this time. With leader election, only the leader sends updates, and
the others read the Lease. The metrics ` + "`leat_shard_*`" + ` show the part of each replica, its waits and its moves, and
` + "`leat_informer_dropped_total`" + ` shows what a client drops because the server does not cut.

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
send nothing to etcd for the objects. Package ` + "`stagger`" + ` spreads the first lists over time and lets the watch cache
answer with any version. Package ` + "`warmstart`" + ` avoids the list (row ` + "`warm`" + `): the agent continues its watch from a file.

`

const scaleLimits = `## Where the limits are

| limit | what it bounds | what happens there | settings that move it |
|---|---|---|---|
| etcd | writes, and lists of the newest version | writes wait for the disk of a majority of its members | write less; read from caches: ` + "`cachedclient`" + `, WatchLists; ` + "`--etcd-servers-overrides`" + ` moves Events to another etcd |
| watch cache of kube-apiserver | the history that a watch can resume from | after a longer outage, watches get 410 and list again | no setting: the server chooses the size; bookmarks, which leat requests, keep idle watches in the history |
| processor of kube-apiserver | handshakes, lists and events of all clients | answers of 429, and slow lists | ` + "`stagger.Options.Jitter`" + `; field selectors; protobuf; more servers, with ` + "`--goaway-chance`" + ` |
| priority and fairness | requests in progress of one kind of clients | requests wait, then 429 with Retry-After | a PriorityLevelConfiguration for the clients; ` + "`scopes.Options.MaxLists`" + `, ` + "`stagger.Options.MaxLists`" + ` |
| bandwidth of the server | bytes of an event times its watches | watches fall behind and are closed | selectors; shards that the server cuts; protobuf; informers of metadata |
| memory of the agent | objects times bytes | the agent is killed | a type of your own, ` + "`packed`" + `, shards, ` + "`stagger.ForNode`" + ` with ` + "`GOMEMLIMIT`" + ` |
| processor of the agent | events times the cost of an event | the backlog of a handler grows | shards, protobuf, ` + "`informer.HandlerOptions.Coalesce`" + ` |
| connections | streams of one HTTP/2 connection | a new connection when all streams of one are in use | ` + "`--http2-max-streams-per-connection`" + `; scopes with selectors that cover several namespaces |

leat bounds the parts that it owns. After an outage, a reflector spreads its list over five seconds. A failed request
waits at most 30 s before the next, and honors ` + "`Retry-After`" + `. Several clusters have a client and informers each;
see package ` + "`multicluster`" + `.
`
