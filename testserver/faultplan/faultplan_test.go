package faultplan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/faultplan"
	"github.com/leatproject/leat/testserver/faults"
)

func match(resource string, verbs ...string) faults.Match {
	return faults.Match{Resource: resource, Verbs: verbs}
}

// texts are faults with their texts.
var texts = map[string]faultplan.Fault{
	"watch pods: drop 10%": {Fault: faults.Fault{Match: match("pods", "watch"), Probability: 0.1, Effect: faults.Drop{}}},
	"fail 503":             {Fault: faults.Fault{Effect: faults.Fail{Code: 503}}},
	`list,watch deployments.apps/status namespace=shop name=web agent="kubectl/1 x": fail 429 message="slow: \"down\"" reason=Busy body=no retry-after=2s header="Content-Type:text/html" skip=1 times=2`: {
		Fault: faults.Fault{
			Match: faults.Match{Verbs: []string{"list", "watch"}, Resource: "deployments.apps/status", Namespace: "shop", Name: "web", UserAgent: "kubectl/1 x"},
			Skip:  1, Times: 2,
			Effect: faults.Fail{
				Code: 429, Message: `slow: "down"`, Reason: "Busy", Body: []byte("no"), RetryAfter: 2 * time.Second,
				Header: map[string][]string{"Content-Type": {"text/html"}},
			},
		},
	},
	"pods: delay 200ms 0.5%": {Fault: faults.Fault{Match: match("pods"), Probability: 0.005, Effect: faults.Delay{For: 200 * time.Millisecond}}},
	"stall":                  {Fault: faults.Fault{Effect: faults.Stall{}}},
	"stall 100":              {Fault: faults.Fault{Effect: faults.Stall{After: 100}}},
	"create: reset times=1":  {Fault: faults.Fault{Match: match("", "create"), Times: 1, Effect: faults.Reset{}}},
	"cut 10 abrupt":          {Fault: faults.Fault{Effect: faults.Cut{After: 10, Abrupt: true}}},
	"get: stale":             {Fault: faults.Fault{Match: match("", "get"), Effect: faults.Stale{}}},
	"stale before":           {Fault: faults.Fault{Effect: faults.Stale{}}, Snapshot: "before"},
	"refuse-watchlist":       {Fault: faults.Fault{Effect: faults.RefuseWatchList{}}},
	"ignore-limit":           {Fault: faults.Fault{Effect: faults.IgnoreLimit{}}},
	"endless-list":           {Fault: faults.Fault{Effect: faults.EndlessList{}}},
	"short-watch 1s abrupt":  {Fault: faults.Fault{Effect: faults.ShortWatch{For: time.Second, Abrupt: true}}},
	"list pods frames=item: drop": {Fault: faults.Fault{
		Match: faults.Match{Verbs: []string{"list"}, Resource: "pods", Frames: []watch.EventType{faults.Item}}, Effect: faults.Drop{},
	}},
	"frames=deleted,initial-events-end: duplicate": {Fault: faults.Fault{
		Match: faults.Match{Frames: []watch.EventType{watch.Deleted, faults.InitialEventsEnd}}, Effect: faults.Duplicate{},
	}},
	"hold":        {Fault: faults.Fault{Effect: faults.Hold{}}},
	"hold 3":      {Fault: faults.Fault{Effect: faults.Hold{Frames: 3}}},
	"malform":     {Fault: faults.Fault{Effect: faults.Malform{}}},
	"cut-frame 7": {Fault: faults.Fault{Effect: faults.CutFrame{At: 7}}},
	"end-watch":   {Fault: faults.Fault{Effect: faults.EndWatch{}}},
	"end-watch 410 message=old abrupt": {Fault: faults.Fault{Effect: faults.EndWatch{
		Error: &metav1.Status{Status: "Failure", Code: 410, Message: "old", Reason: "Expired"}, Abrupt: true,
	}}},
	"stall-events for=5s":                 {Fault: faults.Fault{Effect: faults.StallEvents{}}, For: 5 * time.Second},
	"watch: disconnect abrupt every=1m0s": {Fault: faults.Fault{Match: match("", "watch"), Effect: faults.Disconnect{Abrupt: true}}, Every: time.Minute},
	"compact after=10s":                   {Fault: faults.Fault{Effect: faults.Compact{}}, After: 10 * time.Second},
	"restore before":                      {Fault: faults.Fault{Effect: faults.Restore{}}, Snapshot: "before"},
	"outage after=1s for=2s every=30s": {
		Fault: faults.Fault{Effect: faults.Outage{}}, After: time.Second, For: 2 * time.Second, Every: 30 * time.Second,
	},
}

// TestTexts reads and prints faults of every effect.
func TestTexts(t *testing.T) {
	for text, want := range texts {
		got := must.Get(faultplan.Parse(text))(t)
		require.Equal(t, text, got.String())
		require.Equal(t, want.Fault, got.Fault, text)
		require.Equal(t, []any{want.Snapshot, want.After, want.For, want.Every}, []any{got.Snapshot, got.After, got.For, got.Every}, text)
	}
	for text, same := range map[string]string{
		"  watch\tpods :  drop   10.0% ": "watch pods: drop 10%",
		"* : fail 500":                   "fail 500",
		"list: drop":                     "list frames=item: drop",
		`agent="x": reset`:               "agent=x: reset",
		"end-watch 410":                  `end-watch 410 message="a fault was injected"`,
		"outage 	for=90s":                "outage for=1m30s",
	} {
		got := must.Get(faultplan.Parse(text))(t)
		want := must.Get(faultplan.Parse(same))(t)
		require.Equal(t, want.Fault, got.Fault)
		require.Equal(t, want.For, got.For)
	}
}

// TestWrongTexts shows the error for each kind of mistake.
func TestWrongTexts(t *testing.T) {
	for text, says := range map[string]string{
		"":                                "the effect is missing; it is one of fail, delay,",
		"pods:":                           "the effect is missing",
		"explode":                         `"explode" is not an effect; they are fail, delay,`,
		"watch pods drop":                 `"watch" is not an effect`,
		"wacth pods: drop":                `"wacth" and "pods" would be two resources; verbs come first and are get, list,`,
		"watch,lost pods: drop":           `"lost" is not a verb`,
		"pods,nodes: reset":               `"pods,nodes" is not a resource; write one`,
		"size=7: reset":                   "size= does not select anything",
		"name=: reset":                    "name= has no value",
		"name=a name=b: reset":            "name= is repeated",
		"frames=added frames=error: drop": "frames= is repeated",
		"frames=removed: drop":            `"removed" is not a frame`,
		"frames=added: reset":             "frames= does not fit reset",
		`agent="x: reset`:                 "a double quote is not closed",
		`agent=x"y": reset`:               `x"y" is not a text in double quotes`,
		"reset\ndrop":                     "a fault is one line",
		"get pods: drop":                  "its verbs are list and watch",
		"list pods: hold":                 "hold affects frames of watches, and no items of lists",
		"list: disconnect":                "disconnect affects watches, so its verb is watch",
		"pods: compact":                   "compact affects the whole server",
		"outage 10%":                      "outage affects the whole server",
		"drop 0%":                         `"0%" is not a probability`,
		"drop 101%":                       `"101%" is not a probability`,
		"drop NaN%":                       `"NaN%" is not a probability`,
		"drop 0.1":                        `drop does not take "0.1"`,
		"drop now=1":                      "drop does not take now=",
		"drop skip=-1":                    "skip=-1 is not a number above 0",
		"drop times=1 times=2":            "times= is repeated",
		"drop for=5":                      "for=5 is not a duration above 0",
		"outage every=1s for=1s":          "for= must be shorter than every=",
		"outage every=1s":                 "every= needs for=, because outage lasts until it is removed",
		"fail":                            "fail needs a status code",
		"fail teapot":                     `"teapot" is not a status code between 200 and 599`,
		"fail 503 retry-after=1500ms":     "retry-after= is in whole seconds",
		"fail 503 header=x":               `header="x" is not NAME:VALUE`,
		"fail 503 message=":               "message= has no value",
		"delay":                           `delay needs a duration such as 500ms, and has ""`,
		"cut":                             `cut needs a number that is not negative, and has ""`,
		"hold many":                       `hold needs a number that is not negative, and has "many"`,
		"restore":                         "restore needs the name of a snapshot",
	} {
		_, err := faultplan.Parse(text)
		require.ErrorContains(t, err, says, text)
		require.True(t, strings.HasPrefix(err.Error(), "fault "), err)
		require.NotContains(t, err.Error(), "\n")
	}
}

func TestPlansInYAML(t *testing.T) {
	plan := must.Get(faultplan.ParsePlan([]byte("seed: 7\nfaults:\n- 'watch pods: drop 10%'\n- reset\n")))(t)
	require.Equal(t, "faults:\n- 'watch pods: drop 10%'\n- reset\nseed: 7\n", string(plan.YAML()))
	again := must.Get(faultplan.ParsePlan(plan.YAML()))(t)
	require.Equal(t, plan, again)
	require.Equal(t, "faults: []\nseed: 0\n", string(faultplan.Plan{}.YAML()))

	for text, says := range map[string]string{
		"faults: [reset, explode]":        `faults[1]: fault "explode": "explode" is not an effect`,
		"faults:\n- watch pods: drop 10%": "each fault is a text in quotes",
		"seeds: 7":                        "a plan has the fields seed and faults",
		"seed: -1":                        "a plan has the fields seed and faults",
		"\t":                              "a plan has the fields seed and faults",
	} {
		_, err := faultplan.ParsePlan([]byte(text))
		require.ErrorContains(t, err, says)
	}
}

// FuzzParse checks that Parse reads what String returns in the same way.
func FuzzParse(f *testing.F) {
	for text := range texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		first, err := faultplan.Parse(text)
		if err != nil {
			return
		}
		second, err := faultplan.Parse(first.String())
		require.NoError(t, err)
		require.Equal(t, first, second)
	})
}
