#!/usr/bin/env bash
# Builds what a release has: leat and leat-server for each platform, static and without debugging information, an archive
# and a CycloneDX bill of materials for each binary, and the checksums of all of them. It needs Go, git, and
# tar, gzip and coreutils of GNU.
#
#   tools/release.sh OUT [GOOS/GOARCH ...]
#
# The version comes from the tag of the commit. A change that is not committed is an error, because nobody could build
# the same again. A build of leat-server takes minutes with a cold cache.
set -euo pipefail

out=${1:?usage: tools/release.sh OUT [GOOS/GOARCH ...]}
shift
mkdir -p "$out"
out=$(cd "$out" && pwd -P)
cd -P "$(dirname "$0")/.."
if [[ $out/ = "$PWD"/* ]] && ! git check-ignore -q "$out"; then
	echo "release: git does not ignore $out, so the archives would be changes that are not committed" >&2
	exit 2
fi

platforms=("$@")
if [ ${#platforms[@]} = 0 ]; then
	platforms=({linux,darwin,windows}/{amd64,arm64})
fi
for platform in "${platforms[@]}"; do
	grep -qx "$platform" <<< "$(go tool dist list)" || { echo "release: Go does not know the platform $platform" >&2; exit 2; }
done
if [ -n "$(git status --porcelain)" ]; then
	echo "release: there are changes that are not committed" >&2
	exit 1
fi

version=$(git describe --tags --always --match 'v*')
commit=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH CGO_ENABLED=0
SBOM=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.9.0

# The same commit gives the same archives, on each machine with this version of Go and of gzip. A bill of materials
# differs, because it contains the time, and hashes of the tool that wrote it.
pack() { # NAME PLATFORM BINARY
	local archive=$out/$1-$version-${2/\//-}
	(cd "$work" && tar --format=ustar --mode=u=rwX,go=rX --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "$3" LICENSE README.md) |
		gzip -n > "$archive.tar.gz"
	go run "$SBOM" bin -json -noserial -licenses=false -version "$version" -output "$archive.sbom.json" "$work/$3"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp LICENSE README.md "$work"
rm -f "$out"/leat-*.tar.gz "$out"/leat-*.sbom.json "$out/SHA256SUMS"
for platform in "${platforms[@]}"; do
	suffix=$([ "${platform%/*}" != windows ] || echo .exe)
	# Without the tag, grpc links a page with templates. They call methods by name, so the linker could remove no exported
	# method, and leat-server would have 21 MB more.
	for command in leat=.:./cmd/leat leat-server=testserver/cluster:./cmd/leat-server; do
		name=${command%%=*} place=${command#*=}
		echo "$name $version for $platform"
		GOOS=${platform%/*} GOARCH=${platform#*/} go build -C "${place%:*}" -tags grpcnotrace -buildvcs=true -trimpath -ldflags='-s -w -buildid=' \
			-o "$work/$name$suffix" "${place#*:}"
		pack "$name" "$platform" "$name$suffix"
		rm "$work/$name$suffix"
	done
done
(cd "$out" && sha256sum leat-* > SHA256SUMS)
echo "built from $commit:"
(cd "$out" && ls -l --block-size=K leat-*.tar.gz SHA256SUMS)
