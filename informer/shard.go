package informer

import "time"

// Sharded is a ListerWatcher of a shard of a collection; see package scale/shardedsource. It is a capability: [api.As]
// finds it.
type Sharded[T any] interface {
	// Selects reports whether an object belongs to the shard. Package cachedclient calls it, so that a client does not
	// wait for an object of another shard.
	Selects(object T) bool
	// Shard reports whether the server or the client drops the objects of other shards. An informer shows it in its
	// Status.
	Shard() ShardStatus
}

// ShardStatus reports whether the server or the client drops the objects of other shards of a collection. It is zero
// for a source of a whole collection.
type ShardStatus struct {
	// By is "server" if the server sends only the objects of the shard, and "client" if it sends all of them. It is
	// "undecided" if no answer has shown yet what the server does, because there are no objects.
	By string
	// Since is when that was decided. It is zero if By is "undecided".
	Since time.Time
	// Reason is why the client drops objects. It is nil otherwise.
	Reason error
	// Dropped is the number of objects and events of other shards that the server has sent.
	Dropped uint64
}
