package hashrange

// Follower follows the ranges of one replica: for instance a source that reads only the objects in these ranges.
// Package shard calls it.
type Follower interface {
	// Follow gets all ranges that the replica holds from now on. Read everything in a new range again, because its
	// events were lost before. When a range is missing, the last reconcile in it has returned, and another replica may
	// already hold it; remove its objects without calling handlers. Follow must not block. The calls come one after the
	// other, each with another set than the one before; the first is never with the empty set.
	Follow(held Set)
}
