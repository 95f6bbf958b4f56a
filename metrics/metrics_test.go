package metrics_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/metrics"
	"github.com/leatproject/leat/reconcile/events"
	"github.com/leatproject/leat/scale/shard"
	"github.com/leatproject/leat/workqueue"
)

// elector, gateStats, recorderStats, shardStatus and totals are constant values.
type (
	totals        [5]uint64
	elector       bool
	gateStats     cachedclient.GateStats
	recorderStats events.Stats
	shardStatus   shard.Status
)

func (n totals) Totals() (streams, events, bytes, written, lost uint64) {
	return n[0], n[1], n[2], n[3], n[4]
}

func (e elector) Leading() bool                   { return bool(e) }
func (s gateStats) Stats() cachedclient.GateStats { return cachedclient.GateStats(s) }
func (s recorderStats) Stats() events.Stats       { return events.Stats(s) }
func (s shardStatus) Status() shard.Status        { return shard.Status(s) }

// TestAControllerAtWork compares every series of a small cluster with what happened in it.
func TestAControllerAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, registry := registered(t)
		c := newCluster(t)
		c.create(t, "old")
		maps := c.informer(t, informer.Options[*configMap]{})
		attempts := 0
		ctl := controller.New("mill", controller.Func[api.Key](func(_ context.Context, key api.Key) (controller.Result, error) {
			linger(2 * time.Second)
			if key.Name == "old" {
				return controller.Result{}, nil
			}
			if attempts++; attempts == 1 {
				return controller.Result{}, errors.New("no")
			}
			return controller.Result{RequeueAfter: time.Hour}, nil
		}), controller.Options{Workers: 1})
		ctl.Watch(controller.For(maps).Named("maps"))
		shown(t)(m.Controller(ctl))
		shown(t)(m.Informer("", maps))
		shown(t)(m.Elector("mill-lock", elector(true)))
		shown(t)(m.Recorder("mill", recorderStats{Recorded: 6, Dropped: 1, Spam: 2, Written: 3, Failed: 4, Waiting: 5}))
		must.Get(m.Register("mill", totals{5, 4, 3, 2, 1}))(t)
		must.Get(m.Register("maps", must.Get(codec.NewMask[*configMap]("metadata.labels"))(t)))(t)
		shown(t)(m.Gate("mill", gateStats{Keys: 1, Waits: 2, TimedOut: 3}))
		half, quarter := hashrange.NewSet(hashrange.Range{To: 1 << 63}), hashrange.NewSet(hashrange.Range{To: 1 << 62})
		shown(t)(m.Shard(shardStatus{
			Group: "mill", Lease: "mill-0", Renewed: time.Now(), Members: make([]shard.MemberStatus, 2), Work: 3,
			Target: half, Held: quarter, Releasing: quarter, WaitingSince: time.Now(), ReleasingSince: time.Now().Add(time.Second),
			Acquired: 4, Released: 5, Lost: 6, Err: io.ErrUnexpectedEOF,
		}))
		m.SlowPath("mill-lock")()
		m.OnRequest(apiclient.Request{
			Verb: "get", Method: "GET", Host: "server", Attempt: 2, Code: 200, Sent: 100, Received: 1000,
			Limited: 3 * time.Second, Head: time.Second, Total: 20 * time.Millisecond,
		})
		m.WebhookAdded("/validate")
		m.WebhookStarted("/validate")
		m.WebhookEnded("/validate", 200, 20*time.Millisecond)
		shown(t)(m.Informer("teams", toldInformer{&told{status: informer.Status{
			Check: informer.CheckStatus{Checks: 9, Missed: 2}, Scopes: []informer.ScopeStatus{
				{Name: "a", Check: informer.CheckStatus{Checks: 5}}, {Name: "b", Check: informer.CheckStatus{Checks: 4, Missed: 2}},
			},
		}}}))
		fixture.Start(t, maps.Run)
		fixture.Start(t, ctl.Run)
		fixture.Pass(time.Second)
		c.create(t, "new")
		fixture.Pass(10 * time.Second)
		requireExposition(t, registry, "testdata/exposition.txt")
	})
}

// peers are the names and labels of client-go and controller-runtime, as their dashboards use them.
var peers = map[string]string{
	"certwatcher_read_certificate_errors_total":          "",
	"certwatcher_read_certificate_total":                 "",
	"controller_runtime_active_workers":                  "controller",
	"controller_runtime_max_concurrent_reconciles":       "controller",
	"controller_runtime_reconcile_errors_total":          "controller",
	"controller_runtime_reconcile_panics_total":          "controller",
	"controller_runtime_reconcile_time_seconds":          "controller",
	"controller_runtime_reconcile_timeouts_total":        "controller",
	"controller_runtime_reconcile_total":                 "controller result",
	"controller_runtime_terminal_reconcile_errors_total": "controller",
	"controller_runtime_conversion_webhook_panics_total": "",
	"controller_runtime_webhook_latency_seconds":         "webhook",
	"controller_runtime_webhook_panics_total":            "",
	"controller_runtime_webhook_requests_in_flight":      "webhook",
	"controller_runtime_webhook_requests_total":          "code webhook",
	"informer_store_resource_version":                    "group name resource version",
	"leader_election_master_status":                      "name",
	"leader_election_slowpath_total":                     "name",
	"rest_client_rate_limiter_duration_seconds":          "host verb",
	"rest_client_request_duration_seconds":               "host verb",
	"rest_client_request_retries_total":                  "code host verb",
	"rest_client_request_size_bytes":                     "host verb",
	"rest_client_requests_total":                         "code host method",
	"rest_client_response_size_bytes":                    "host verb",
	"workqueue_adds_total":                               "controller name",
	"workqueue_depth":                                    "controller name priority",
	"workqueue_longest_running_processor_seconds":        "controller name",
	"workqueue_queue_duration_seconds":                   "controller name",
	"workqueue_retries_total":                            "controller name",
	"workqueue_unfinished_work_seconds":                  "controller name",
	"workqueue_work_duration_seconds":                    "controller name",
}

var (
	described = regexp.MustCompile(`(?m)^# HELP (\S+) \S`)
	series    = regexp.MustCompile(`(?m)^(\w+?)(?:_bucket|_count|_sum)?(?:\{(.*)\})? \S+$`)
	labels    = regexp.MustCompile(`(\w+)="`)
	bound     = regexp.MustCompile(`(?m)^(\w+)_bucket\{.*le="([^"]+)"\}`)
)

// TestNames reads the exposition of TestAControllerAtWork, which contains every family. The peers' families must have
// the peers' names; all others must have a name of leat.
func TestNames(t *testing.T) {
	content := must.Get(os.ReadFile("testdata/exposition.txt"))(t)
	text := string(content)
	_, registry := registered(t)
	require.ErrorContains(t, must.Err(metrics.New(registry)), "metrics: register: ")

	found := map[string]string{}
	for _, line := range series.FindAllStringSubmatch(text, -1) {
		var names []string
		for _, label := range labels.FindAllStringSubmatch(line[2], -1) {
			if label[1] != "le" {
				names = append(names, label[1])
			}
		}
		found[line[1]] = strings.Join(names, " ")
	}
	require.Len(t, described.FindAllString(text, -1), len(found))
	for name, of := range found {
		if !strings.HasPrefix(name, "leat_") {
			require.Equal(t, peers[name], of, name)
		}
	}
	require.Subset(t, slices.Collect(maps.Keys(found)), slices.Collect(maps.Keys(peers)))
	descriptions := make(chan *prometheus.Desc, 1000)
	m := capture{}
	must.Get(metrics.New(&m))(t)
	m.Describe(descriptions)
	require.Len(t, found, len(descriptions), "the test shows everything")
}

// capture is a registerer that keeps what is registered.
type capture struct{ prometheus.Collector }

func (c *capture) Register(which prometheus.Collector) error { c.Collector = which; return nil }
func (c *capture) MustRegister(...prometheus.Collector)      {}
func (c *capture) Unregister(prometheus.Collector) bool      { return false }

func TestBucketsAreThePeers(t *testing.T) {
	content := must.Get(os.ReadFile("testdata/exposition.txt"))(t)
	found := map[string][]string{}
	for _, b := range bound.FindAllStringSubmatch(string(content), -1) {
		if b[2] != "+Inf" && !slices.Contains(found[b[1]], b[2]) {
			found[b[1]] = append(found[b[1]], b[2])
		}
	}
	for name, buckets := range map[string]string{
		"workqueue_queue_duration_seconds":           "1e-08 1e-07 1e-06 9.999999999999999e-06 9.999999999999999e-05 0.001 0.01 0.1 1 10 100 1000",
		"workqueue_work_duration_seconds":            "1e-08 1e-07 1e-06 9.999999999999999e-06 9.999999999999999e-05 0.001 0.01 0.1 1 10 100 1000",
		"controller_runtime_webhook_latency_seconds": "1e-08 1e-07 1e-06 9.999999999999999e-06 9.999999999999999e-05 0.001 0.01 0.1 1 10 100 1000",
		"rest_client_request_duration_seconds":       "0.005 0.025 0.1 0.25 0.5 1 2 4 8 15 30 60",
		"rest_client_rate_limiter_duration_seconds":  "0.005 0.025 0.1 0.25 0.5 1 2 4 8 15 30 60",
		"rest_client_request_size_bytes":             "64 256 512 1024 4096 16384 65536 262144 1.048576e+06 4.194304e+06 1.6777216e+07",
		"rest_client_response_size_bytes":            "64 256 512 1024 4096 16384 65536 262144 1.048576e+06 4.194304e+06 1.6777216e+07",
		"controller_runtime_reconcile_time_seconds":  "0.005 0.01 0.025 0.05 0.1 0.15 0.2 0.25 0.3 0.35 0.4 0.45 0.5 0.6 0.7 0.8 0.9 1 1.25 1.5 1.75 2 2.5 3 3.5 4 4.5 5 6 7 8 9 10 15 20 25 30 40 50 60",
	} {
		require.Equal(t, buckets, strings.Join(found[name], " "), name)
	}
}

// A series must begin at zero; otherwise rate() does not see its first change.
func TestSeriesBeginAtZero(t *testing.T) {
	m, registry := registered(t)
	shown(t)(m.Controller(controller.New("mill", controller.Func[string](func(context.Context, string) (controller.Result, error) {
		return controller.Result{}, nil
	}), controller.Options{Workers: 3})))
	m.SlowPath("lock")
	require.Equal(t, map[string]float64{
		"mill,success": 0, "mill,error": 0, "mill,requeue_after": 0, "mill,requeue": 0, "mill,cancelled": 0,
	}, values(t, registry, "controller_runtime_reconcile_total"))
	require.Equal(t, map[string]float64{"mill,mill,0": 0}, values(t, registry, "workqueue_depth"))
	require.Equal(t, map[string]float64{"mill,queued": 0, "mill,started": 0, "mill,done": 0}, values(t, registry, "leat_event_latency_seconds"))
	require.Equal(t, map[string]float64{"lock": 0}, values(t, registry, "leader_election_slowpath_total"))
	require.Equal(t, map[string]float64{"mill": 3}, values(t, registry, "controller_runtime_max_concurrent_reconciles"))
	for _, name := range []string{
		"controller_runtime_reconcile_errors_total", "controller_runtime_terminal_reconcile_errors_total",
		"controller_runtime_reconcile_panics_total", "controller_runtime_reconcile_timeouts_total",
		"controller_runtime_reconcile_time_seconds", "controller_runtime_active_workers", "leat_controller_synced",
	} {
		require.Equal(t, map[string]float64{"mill": 0}, values(t, registry, name), name)
	}
}

// The results of reconciles have the same labels as in controller-runtime.
func TestResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, registry := registered(t)
		ctl := controller.New("mill", controller.Func[string](func(ctx context.Context, key string) (controller.Result, error) {
			switch key {
			case "terminal":
				return controller.Result{}, controller.TerminalError(errors.New("no"))
			case "panic":
				panic("no")
			case "slow":
				<-ctx.Done()
				return controller.Result{}, ctx.Err()
			}
			return controller.Result{}, nil
		}), controller.Options{MaxRetries: 1, ReconcileTimeout: time.Minute})
		shown(t)(m.Controller(ctl))
		fixture.Start(t, ctl.Run)
		for _, key := range []string{"fine", "terminal", "panic"} {
			ctl.Add(key, workqueue.Item{})
			fixture.Pass(time.Second)
		}
		ctl.Add("slow", workqueue.Item{})
		fixture.Pass(10 * time.Second)
		require.Equal(t, map[string]float64{"mill": 1}, values(t, registry, "controller_runtime_active_workers"))
		require.Equal(t, map[string]float64{"mill,mill": 10}, values(t, registry, "workqueue_unfinished_work_seconds"))
		require.Equal(t, map[string]float64{"mill,mill": 10}, values(t, registry, "workqueue_longest_running_processor_seconds"))
		fixture.Pass(10 * time.Minute)
		require.Equal(t, map[string]float64{
			"mill,success": 1, "mill,error": 5, "mill,requeue_after": 0, "mill,requeue": 0, "mill,cancelled": 0,
		}, values(t, registry, "controller_runtime_reconcile_total"))
		for name, count := range map[string]float64{
			"controller_runtime_reconcile_errors_total": 5, "controller_runtime_terminal_reconcile_errors_total": 1,
			"controller_runtime_reconcile_panics_total": 2, "controller_runtime_reconcile_timeouts_total": 2,
			"leat_controller_retries_exhausted_total": 2, "controller_runtime_reconcile_time_seconds": 6,
		} {
			require.Equal(t, map[string]float64{"mill": count}, values(t, registry, name), name)
		}
	})
}

func TestHandler(t *testing.T) {
	m, registry := registered(t)
	shown(t)(m.Elector("lock", elector(true)))
	registry.MustRegister(collectors.NewGoCollector())
	server := httptest.NewServer(metrics.Handler(registry))
	defer server.Close()
	answer := must.Get(http.Get(server.URL))(t)
	defer answer.Body.Close()
	body := must.Get(io.ReadAll(answer.Body))(t)
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.True(t, strings.Contains(string(body), "\nleader_election_master_status{name=\"lock\"} 1\n"), string(body))
	require.Contains(t, string(body), "\ngo_goroutines ")
}
