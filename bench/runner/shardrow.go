package runner

import (
	"errors"
	"math"

	"github.com/leatproject/leat/bench/server"
	"github.com/leatproject/leat/bench/subject"
)

// fifths is the number of shards of the row.
const fifths = 5

// shards measures an informer of one fifth of the objects against one of all.
func shards(z Sizes) Row {
	whole := subject.Spec{Work: subject.Shard, Objects: z.Cached, Events: z.Events}
	fifth := whole
	fifth.Shards = fifths
	unshared, unsharedFifth := whole, fifth
	unshared.Unshared, unsharedFifth.Unshared = true, true
	atServer := func(e Entrant) Entrant {
		e.Cuts = true
		return e
	}
	return Row{
		Name: "shard", Title: "A shard of one fifth", Quick: true, Rounds: min(3, z.Rounds),
		Columns: []string{"live MB", "peak MB", "list cpu s", "cpu us/event", "list MB", "watch MB"},
		Note: "50,000 pods (a quick run has 10,000), of which one informer holds all, or the first fifth of the hashes of their UIDs " +
			"(package scale/shardedsource). Either the server cuts, or the client drops the other objects before it decodes them. An event is one " +
			"change at the server, also of a pod of another shard. MB of the list and the watch are the bytes that the client reads " +
			"from the network; live and peak MB are those after the first list. Replicas of a workload share parts in the cache. Nearly " +
			"all of the 2,500 workloads have pods in each shard, so each shard holds nearly all of these parts; unshared has none.",
		Entrants: []Entrant{
			entrant("leat, 8 fields, whole", leat, whole, subject.Struct, subject.Protobuf),
			atServer(entrant("leat, 8 fields, cut by the server", leat, fifth, subject.Struct, subject.Protobuf)),
			extra(entrant("leat, 8 fields, cut by the client", leat, fifth, subject.Struct, subject.Protobuf)),
			entrant("leat, corev1.Pod, whole", leat, whole, subject.Full, subject.Protobuf),
			atServer(entrant("leat, corev1.Pod, cut by the server", leat, fifth, subject.Full, subject.Protobuf)),
			extra(entrant("leat, corev1.Pod, cut by the client", leat, fifth, subject.Full, subject.Protobuf)),
			entrant("leat, corev1.Pod unshared, whole", leat, unshared, subject.Full, subject.Protobuf),
			atServer(entrant("leat, corev1.Pod unshared, cut by the server", leat, unsharedFifth, subject.Full, subject.Protobuf)),
		},
	}
}

// divide sets the number of objects of the shard, and returns the first pod of it. For the whole collection it returns
// the same pod, so that all entrants get the same events.
func (r *run) divide(s *subject.Spec) (pod int) {
	pod, held := -1, 0
	for i, hash := range r.set.Hashes(s.Objects) {
		if hash <= math.MaxUint64/fifths {
			if held++; pod < 0 {
				pod = i
			}
		}
	}
	if s.Shards > 0 {
		s.Held = held
	}
	return pod
}

// checkCut checks that the server cut the collection, or did not.
func checkCut(requests []server.Request, cuts bool) error {
	for _, q := range requests {
		if (q.Watch || q.Limit != 1) && q.Cut != cuts { // a list of one object asks whether the server obeys
			return errors.New("runner: the server cut the collection and should not have, or the other way round")
		}
	}
	return nil
}
