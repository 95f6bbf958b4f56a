package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leatproject/leat/scale/shard"
)

// Shard is the part of a member of a shard group that metrics need. *shard.Member implements it.
type Shard interface {
	// Status is called at every scrape.
	Status() shard.Status
}

// shardFamilies have no counterpart in client-go and controller-runtime.
type shardFamilies struct {
	member, failing, members, renewed              family
	ranges, held, target, waiting, releasing       family
	waitingFor, releasingFor, work, handOver, lost family
}

func newShardFamilies(c *catalog) shardFamilies {
	return shardFamilies{
		member:  c.gauge("leat_shard_member", "1 if this replica is a member of its group.", "group"),
		failing: c.gauge("leat_shard_failing", "1 if the last step of this replica had an error.", "group"),
		members: c.gauge("leat_shard_members", "Members of the group that this replica sees.", "group"),
		renewed: c.gauge("leat_shard_lease_age_seconds", "Time since the last successful renewal of the lease began.", "group"),

		ranges:       c.gauge("leat_shard_ranges", "Ranges of hashes that this replica holds.", "group"),
		held:         c.gauge("leat_shard_held_ratio", "Part of all hashes that this replica holds.", "group"),
		target:       c.gauge("leat_shard_target_ratio", "Part of all hashes that this replica should hold.", "group"),
		waiting:      c.gauge("leat_shard_waiting_ratio", "Part of all hashes that this replica should hold and does not hold yet.", "group"),
		waitingFor:   c.gauge("leat_shard_waiting_seconds", "How long this replica has waited for ranges, else 0.", "group"),
		releasing:    c.gauge("leat_shard_releasing_ratio", "Part of all hashes that this replica holds until its work in them has ended.", "group"),
		releasingFor: c.gauge("leat_shard_releasing_seconds", "How long this replica has released ranges, else 0.", "group"),
		work:         c.gauge("leat_shard_work", "Reconciles that run in the ranges of this replica.", "group"),
		handOver: c.counter("leat_shard_handovers_total", "Changes after which this replica had new ranges (acquired) or fewer ranges (released).",
			"group", "direction"),
		lost: c.counter("leat_shard_leases_lost_total", "Leases that this replica has lost.", "group"),
	}
}

// Shard shows a member of a shard group, under the name of the group. The error is ErrNameTaken.
func (m *Metrics) Shard(s Shard) (*CollectorRegistration, error) {
	group := s.Status().Group
	return m.add("shard", group, func() member { return &shownShard{m, group, s} })
}

// shownShard collects the series of a member of a shard group.
type shownShard struct {
	m     *Metrics
	group string
	s     Shard
}

func (s *shownShard) subject() any { return s.s }

func (s *shownShard) leave() {}

func (s *shownShard) collect(to chan<- prometheus.Metric) {
	f, now := &s.m.shards, s.s.Status()
	f.member.sendBool(to, now.Lease != "", s.group)
	f.failing.sendBool(to, now.Err != nil, s.group)
	f.members.send(to, float64(len(now.Members)), s.group)
	if !now.Renewed.IsZero() {
		f.renewed.send(to, max(time.Since(now.Renewed), 0).Seconds(), s.group)
	}
	f.ranges.send(to, float64(len(now.Held)), s.group)
	f.held.send(to, now.Held.Share(), s.group)
	f.target.send(to, now.Target.Share(), s.group)
	f.waiting.send(to, now.Target.Minus(now.Held).Share(), s.group)
	f.waitingFor.send(to, passed(now.WaitingSince), s.group)
	f.releasing.send(to, now.Releasing.Share(), s.group)
	f.releasingFor.send(to, passed(now.ReleasingSince), s.group)
	f.work.send(to, float64(now.Work), s.group)
	f.handOver.send(to, float64(now.Acquired), s.group, "acquired")
	f.handOver.send(to, float64(now.Released), s.group, "released")
	f.lost.send(to, float64(now.Lost), s.group)
}

// passed returns the seconds since a time, or 0 for the zero time.
func passed(since time.Time) float64 {
	if since.IsZero() {
		return 0
	}
	return max(time.Since(since), 0).Seconds()
}
