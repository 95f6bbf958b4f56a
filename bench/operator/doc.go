// Package operator has the CronJob operator of the kubebuilder tutorial in three shapes: on controller-runtime, on
// controller-runtime with leat's cache, and on leat. All three do the same: package cronjob has the types and the
// decision, and each program has the reads, the writes and the wiring. The programs were written for this bench.
package operator
