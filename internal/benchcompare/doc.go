// Command benchcompare compares the benchmarks of the working tree with those of an older commit, so that a slower
// change is seen before it lands:
//
//	make bench-compare BASE=HEAD~3
//	make bench-compare BASE=v0.3.0 BENCHPACKAGES=./codec BENCHFLAGS='-bench Events -rounds 10'
//
// It checks the commit out into a temporary folder (git worktree), compiles the tests of each package once in both
// trees, and runs them by turns, so that a machine that gets slower affects both. benchstat prints the result. Each
// tree runs its own test files; benchcompare names the files with benchmarks that differ, because their figures may be
// of different work. A benchmark that one tree lacks has a figure for the other one only.
//
// Figures of time are worth nothing while the machine does something else. Allocations and bytes are (-allocs).
package main
