#!/usr/bin/env bash
# benchcompare.sh BASE PACKAGE... compares the benchmarks of the working tree with those of an older commit, so that a
# slower change is seen before it lands. make bench-compare and make bench-quick call it.
#
# It checks the commit out into a temporary folder, compiles the tests of each package once in both trees, and runs them
# by turns, so that a machine that gets slower affects both. benchstat prints the result. Each tree runs its own test
# files; the script names those with benchmarks that differ, because their figures may be of different work.
#
# Figures of time are worth nothing while the machine does something else. Allocations and bytes are (FILTER).
#
# Environment: BENCH (regular expression of the benchmarks), ROUNDS (benchstat needs four for a significant result),
# TIME (-benchtime of a round), FILTER (of benchstat), OPTIONAL (if not empty, an unknown commit is no error).
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD base=$1
shift

if ! commit=$(git rev-parse --verify --quiet --end-of-options "$base^{commit}"); then
	echo "benchcompare: BASE=$base is not a commit of this clone, so nothing is compared (a shallow clone: git fetch --unshallow)" >&2
	[ -n "${OPTIONAL:-}" ]
	exit
fi

scratch=$(mktemp -d)
trap 'git worktree remove --force "$scratch/base"; rm -rf "$scratch"' EXIT
git worktree add --quiet --detach "$scratch/base" "$commit"

# compile NAME ROOT PACKAGE compiles the tests of a package in one tree, which may lack it.
compile() {
	[ ! -d "$2/$3" ] || (cd "$2" && go test -c -o "$scratch/$1-${3//\//-}.test" "./$3")
}

# run NAME ROOT PACKAGE adds the figures of a package in one tree.
run() {
	local binary="$scratch/$1-${3//\//-}.test"
	[ ! -e "$binary" ] || (cd "$2/$3" && "$binary" -test.run='^$' -test.benchmem \
		-test.bench="${BENCH:-.}" -test.benchtime="${TIME:-300ms}") >>"$scratch/$1.txt"
}

packages=()
for folder in $(go list -f '{{.Dir}}' "$@"); do
	files=$(grep -ls '^func Benchmark' "$folder"/*_test.go) || continue
	packages+=("${folder#"$root"/}")
	git diff --name-only "$commit" -- $files | sed 's/$/ is not as in BASE/'
done
for package in "${packages[@]}"; do
	compile base "$scratch/base" "$package"
	compile now "$root" "$package"
done
for round in $(seq "${ROUNDS:-6}"); do
	for package in "${packages[@]}"; do
		[ $((round % 2)) = 0 ] || run base "$scratch/base" "$package"
		run now "$root" "$package"
		[ $((round % 2)) = 1 ] || run base "$scratch/base" "$package"
	done
done
go tool -modfile=tools/go.mod benchstat ${FILTER:+-filter "$FILTER"} base="$scratch/base.txt" now="$scratch/now.txt"
