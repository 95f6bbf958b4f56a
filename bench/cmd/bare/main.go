// Command bare is a program without a library as a subject of the bench.
package main

import (
	"github.com/leatproject/leat/bench/engine/bare"
	"github.com/leatproject/leat/bench/subject"
)

func main() { subject.Main(bare.Library()) }
