// Package metrics shows Prometheus the state of leat's parts, with the names that existing dashboards use. Add each
// part with one call; a scrape reads its numbers.
//
// # Example
//
//	registry := prometheus.NewRegistry()
//	m, err := metrics.New(registry)
//	cfg.OnRequest = m.OnRequest       // rest_client_*
//	_, err = m.Informer("", pods)     // leat_informer_*
//	_, err = m.Controller(c)          // controller_runtime_*, workqueue_*, leat_event_latency_seconds
//	_, err = m.Elector("my-lease", e) // leader_election_*
//	_, err = m.Shard(member)          // leat_shard_*
//	_, err = m.Mask("pods", mask)     // leat_mask_*
//	webhook.Options{Observer: m}      // controller_runtime_webhook_*, certwatcher_*
//	manager.AdminOptions{Metrics: metrics.Handler(registry)}
//
// See Example. The collectors of client_golang show the Go runtime and the process; register them beside these.
//
// # Promises
//
//  1. Names, labels and buckets are those of client-go and controller-runtime, if these have the metric. Series begin
//     at zero.
//  2. The numbers agree with what happened; times are exact to the nanosecond.
//  3. Between two scrapes, this package works only for histograms and request counters. It allocates only the label
//     code of a request.
//  4. The number of series has a limit: the number of members, 25 priorities per queue, and 25 handlers per informer.
//  5. A removed member leaves no series and no reference. An informer that has stopped is removed automatically.
//  6. Nothing is registered for the whole process, so there may be several Metrics.
//
// # Concurrency
//
// All methods may be called on any goroutine, at any time, also before and after the Run of a member, and do not block.
// A scrape takes the locks of Stats and Status, one after the other. This package starts no goroutine.
//
// # Differences from client-go
//
// client-go and controller-runtime have global registries, and gauges that are also written between scrapes.
// leat_event_latency_seconds and the leat_informer_* series have no counterpart there. The result requeue is always 0;
// reconciles that end with their controller have the result cancelled. Watches are counted but not timed. The keys that
// a gate holds back are in no queue; leat_controller_gated_keys counts them. There are no metrics about DNS, exec
// plugins, or the expiry of certificates.
package metrics
