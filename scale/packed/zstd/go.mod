// The compression of package packed. It has a module of its own, so that leat does not require zstd.
module github.com/leatproject/leat/scale/packed/zstd

go 1.26.0

require github.com/klauspost/compress v1.20.3
