// Package metrics shows Prometheus what the parts of leat do, under the names that existing dashboards read.
//
// # Place in the pipeline
//
// Beside all of it. Metrics is told what to show, one call a part, and asks when somebody scrapes:
//
//	registry := prometheus.NewRegistry()
//	m, err := metrics.New(registry)
//	cfg.OnRequest = m.OnRequest          // rest_client_*
//	_, err = m.Informer("", pods)        // leat_informer_*
//	_, err = m.Controller(c)             // controller_runtime_*, workqueue_*, leat_event_latency_seconds
//	_, err = m.Elector("my-lease", e)    // leader_election_*
//	manager.AdminOptions{Metrics: metrics.Handler(registry)}
//
// What the Go runtime and the process do is shown by the collectors of client_golang, for who registers them beside it.
//
// # Guarantees
//
//  1. Names, labels and buckets are those of client-go and controller-runtime, where those have them (TestNames,
//     TestBucketsAreThePeers), and no series is missing because nothing has happened yet (TestSeriesBeginAtZero).
//  2. What is shown is what was done, to the nanosecond (TestAControllerAtWork, TestRequests).
//  3. Between two scrapes nothing costs anything but distributions and the counters of requests, and nothing allocates
//     but the three digits of a request's code (TestNothingIsAllocated; BenchmarkHooks, BenchmarkController).
//  4. The number of series is bounded, whatever happens: by what is shown, 25 priorities a queue and 25 handlers an
//     informer (TestPrioritiesAreBounded, TestHandlersAreBounded).
//  5. What is removed leaves no series, and no reference to it. An informer that has stopped leaves by itself
//     (TestRemove, TestAnInformerThatStopsLeaves).
//  6. Nothing is registered for the whole process, so that there may be several Metrics (TestTwoOfThem).
//
// # Concurrency
//
// All methods may be called from anywhere, at any time, before, during and after the Run of what is shown, and do not
// block. A scrape takes the locks that Stats and Status take, one after the other. There is no goroutine.
//
// # Differences from client-go
//
// client-go and controller-runtime have global registries, and gauges that are written to whether somebody looks or not.
// leat_event_latency_seconds, which says how late reconciles are, and the leat_informer_* series have no counterpart there,
// but for the version of the store. requeue, a result of controller-runtime, is always 0; reconciles that end with their
// controller have a result of their own, cancelled. Watches are not timed. What a key's gate holds back is in no queue: see
// leat_controller_gated_keys.
//
// There is nothing about DNS, exec plugins and the expiry of certificates, which apiclient does not tell of, and nothing
// about webhooks.
//
// # Example
//
// See Example.
package metrics
