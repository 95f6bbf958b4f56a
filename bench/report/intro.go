package report

const intro = `# Benchmarks

leat and client-go at the same work, in one run. ` + "`make bench`" + ` writes this page and its charts from the measured figures.
Ratios are similar on other machines; absolute figures are not. A missed target is marked.
[benchmarks/rows.md](benchmarks/rows.md) has every row of the run, and the machine.
[benchmarks/method.md](benchmarks/method.md) says how it is measured, and how to repeat it.

`

const rowsIntro = `# All rows of the bench

[benchmarks.md](../benchmarks.md) has the targets and the charts of these rows, and [method.md](method.md) says how they
are measured. Each figure is the median of several rounds, followed by the lowest and the highest value.

`

// questions explain the IDs of the targets.
var questions = [][2]string{
	{"P1", "events of a watch as whole Pods, JSON"},
	{"P2", "events of a watch in 8 fields, JSON"},
	{"P3", "events of a watch as whole Pods, protobuf"},
	{"P4", "events of a watch in 8 fields, protobuf"},
	{"P5", "memory of a cache of whole Pods"},
	{"P6", "memory of a cache of 8 fields"},
	{"P7", "peak memory of the first list"},
	{"P8", "a list in which nothing has changed"},
	{"P9", "many handlers of one informer, and one that is slow"},
	{"P10", "the workqueue"},
	{"P11", "one writer of a cache beside many readers"},
	{"P12", "a small agent: its binary, and its memory without work"},
	{"P13", "the time from a write to the handler"},
	{"P14", "growth from 10,000 objects to a million"},
	{"P15", "a cache of bytes, packed or compressed"},
	{"P16", "parts that objects share"},
	{"P17", "one event at a time"},
	{"P18", "500 custom resources"},
	{"P19", "many namespaces, warm starts, and shards"},
	{"P20", "test servers beside etcd and kube-apiserver"},
	{"P21", "one operator on three libraries"},
	{"P22", "events that change every text"},
	{"P23", "packed Pods, and a handler that takes both states"},
	{"P24", "whole Pods with a mask of 8 fields"},
	{"tap", "what a recording costs"},
}
