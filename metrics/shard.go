package metrics

import (
	"math"
	"time"

	"github.com/leatproject/leat/scale/shard"
)

// Shard is the part of a member of a shard group that metrics need. *shard.Member implements it.
type Shard interface {
	// Status is called at every scrape.
	Status() shard.Status
}

// newShardTable returns families without a counterpart in client-go and controller-runtime.
func newShardTable(c *catalog) *table[shard.Status] {
	t := newTable[shard.Status](c, "group")
	t.gauge("leat_shard_member", "1 if this replica is a member of its group.", func(s shard.Status) float64 { return one(s.Lease != "") })
	t.gauge("leat_shard_failing", "1 if the last step of this replica had an error.", func(s shard.Status) float64 { return one(s.Err != nil) })
	t.gauge("leat_shard_members", "Members of the group that this replica sees.", func(s shard.Status) float64 { return float64(len(s.Members)) })
	t.gauge("leat_shard_lease_age_seconds", "Time since the last successful renewal of the lease began.", func(s shard.Status) float64 { return age(s.Renewed) })
	t.gauge("leat_shard_ranges", "Ranges of hashes that this replica holds.", func(s shard.Status) float64 { return float64(len(s.Held)) })
	t.gauge("leat_shard_held_ratio", "Part of all hashes that this replica holds.", func(s shard.Status) float64 { return s.Held.Share() })
	t.gauge("leat_shard_target_ratio", "Part of all hashes that this replica should hold.", func(s shard.Status) float64 { return s.Target.Share() })
	t.gauge("leat_shard_waiting_ratio", "Part of all hashes that this replica should hold and does not hold yet.", func(s shard.Status) float64 { return s.Target.Minus(s.Held).Share() })
	t.gauge("leat_shard_waiting_seconds", "How long this replica has waited for ranges, else 0.", func(s shard.Status) float64 { return passed(s.WaitingSince) })
	t.gauge("leat_shard_releasing_ratio", "Part of all hashes that this replica holds until its work in them has ended.", func(s shard.Status) float64 { return s.Releasing.Share() })
	t.gauge("leat_shard_releasing_seconds", "How long this replica has released ranges, else 0.", func(s shard.Status) float64 { return passed(s.ReleasingSince) })
	t.gauge("leat_shard_work", "Reconciles that run in the ranges of this replica.", func(s shard.Status) float64 { return float64(s.Work) })
	t.counter("leat_shard_leases_lost_total", "Leases that this replica has lost.", func(s shard.Status) float64 { return float64(s.Lost) })
	handOver := t.counterOf("direction", "leat_shard_handovers_total", "Changes after which this replica had new ranges (acquired) or fewer ranges (released).")
	handOver("acquired", func(s shard.Status) float64 { return float64(s.Acquired) })
	handOver("released", func(s shard.Status) float64 { return float64(s.Released) })
	return t
}

// Shard shows a member of a shard group, under the name of the group. The error is ErrNameTaken.
func (m *Metrics) Shard(s Shard) (*CollectorRegistration, error) {
	group := s.Status().Group
	return m.add("shard", group, func() member { return &named[shard.Status]{s, group, m.shards, s.Status} })
}

// age returns the seconds since a time, or NaN for the zero time.
func age(of time.Time) float64 {
	if of.IsZero() {
		return math.NaN()
	}
	return passed(of)
}

// passed returns the seconds since a time, or 0 for the zero time.
func passed(since time.Time) float64 {
	if since.IsZero() {
		return 0
	}
	return max(time.Since(since), 0).Seconds()
}
