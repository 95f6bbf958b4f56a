package livepage

import (
	"fmt"
	"slices"

	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/reflector"
)

// shardState is this replica in a group that divides the objects. Held, Target, Waiting and Releasing are parts of all
// hashes. The name of the group, the identity and the text are there with debug.
type shardState struct {
	Name           string  `json:"name"`
	Member         bool    `json:"member"`
	Failing        bool    `json:"failing"`
	Members        int     `json:"members"`
	Ranges         int     `json:"ranges"`
	Held           float64 `json:"held"`
	Target         float64 `json:"target"`
	Waiting        float64 `json:"waiting"`
	WaitingSince   int64   `json:"waitingSince"`
	Releasing      float64 `json:"releasing"`
	ReleasingSince int64   `json:"releasingSince"`
	Renewed        int64   `json:"renewed"`
	Work           int     `json:"work"`
	Moves          int64   `json:"moves"` // of ranges to this replica and from it
	Lost           int64   `json:"lost"`
	Identity       string  `json:"identity,omitempty"`
	Text           string  `json:"text,omitempty"`
}

// mostScopes is the number of scopes of an informer that the page shows.
const mostScopes = 20

// droppedState says who drops the objects of other shards; see informer.ShardStatus.
type droppedState struct {
	By      string `json:"by"`
	Dropped uint64 `json:"dropped"`
	Reason  string `json:"reason,omitempty"` // with debug
}

// scopeState is one stream of an informer of several.
type scopeState struct {
	Name    string          `json:"name"`
	Phase   reflector.Phase `json:"phase"`
	Synced  bool            `json:"synced"`
	Objects int             `json:"objects"`
	Shard   droppedState    `json:"shard"`
	Error   string          `json:"error,omitempty"`
}

func shardStateOf(m shown[sharded], n int, debug bool) shardState {
	now := m.part.Status()
	s := shardState{
		Name: fmt.Sprintf("shard %d", n+1), Member: now.Lease != "", Failing: now.Err != nil, Members: len(now.Members), Ranges: len(now.Held),
		Held: now.Held.Share(), Target: now.Target.Share(), Waiting: now.Target.Minus(now.Held).Share(), WaitingSince: millis(now.WaitingSince),
		Releasing: now.Releasing.Share(), ReleasingSince: millis(now.ReleasingSince), Renewed: millis(now.Renewed),
		Work: now.Work, Moves: now.Acquired + now.Released, Lost: now.Lost,
	}
	if debug {
		s.Name, s.Identity, s.Text = m.name, now.Identity, now.String()
	}
	return s
}

func dropped(s informer.ShardStatus, debug bool) droppedState {
	out := droppedState{By: s.By, Dropped: s.Dropped}
	if s.Reason != nil && debug {
		out.Reason = s.Reason.Error()
	}
	return out
}

func scopeStates(all []informer.ScopeStatus) []scopeState {
	all = slices.Clone(all)
	well := func(s informer.ScopeStatus) int {
		if s.Synced && s.Reflector.Err == nil {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(all, func(a, b informer.ScopeStatus) int { return well(a) - well(b) })
	out := []scopeState{}
	for _, s := range all[:min(len(all), mostScopes)] {
		one := scopeState{
			Name: s.Name, Phase: s.Reflector.Phase, Synced: s.Synced, Objects: s.Objects, Shard: dropped(s.Shard, true),
		}
		if s.Reflector.Err != nil {
			one.Error = s.Reflector.Err.Error()
		}
		out = append(out, one)
	}
	return out
}
